// The hooks that come with the library.
#include "rensa/device/memory_hooks.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <thread>

#include "tests/device/fake_source.h"

/// Functions with names of a program's own, for the report.
__attribute__((noinline)) rensa::StoragePtr program_forward(rensa::MemoryPool& pool,
                                                            rensa::cuda::StreamState* stream) {
  return pool.malloc(3 << 20, stream);
}

namespace rensa {
namespace {

class MemoryHooks : public ::testing::Test {
 protected:
  MemoryHooks() { pool.set_caching(true); }
  testing::FakeDevice device;
  std::shared_ptr<cuda::StreamState> stream = testing::fake_stream();
  MemoryPool pool{gpu(0), device.source()};
};

TEST_F(MemoryHooks, DebugPrintWritesALineACall) {
  std::ostringstream out;
  DebugPrintHook hook(out);
  {
    MemoryHookScope scope(hook);
    pool.malloc(700, stream.get());
  }
  pool.malloc(700, stream.get());
  std::istringstream lines(out.str());
  std::string line, whole;
  int count = 0;
  while (std::getline(lines, line)) {
    ++count;
    EXPECT_EQ(line.front(), '{');
    EXPECT_EQ(line.back(), '}');
    EXPECT_NE(line.find("\"device\": \"cuda:0\""), std::string::npos) << line;
    whole += line.substr(0, line.find(", \"device\"")) + line.substr(line.find(", \"size\""));
  }
  EXPECT_EQ(count, 3) << out.str();
  auto at = [&](const char* part) { return whole.find(part); };
  EXPECT_LT(at("{\"hook\": \"alloc\", \"size\": 700, \"rounded_size\": 2097152, \"data\": \"0x"),
            at("{\"hook\": \"malloc\", \"size\": 700, \"rounded_size\": 1024"));
  EXPECT_LT(at("{\"hook\": \"malloc\""), at("{\"hook\": \"free\", \"size\": 700"));
  EXPECT_NE(at("{\"hook\": \"free\""), std::string::npos);
}

TEST_F(MemoryHooks, LineProfileAttributesToLabels) {
  LineProfileHook hook({.callers = false});
  {
    MemoryHookScope scope(hook);
    StoragePtr a, b, c, d;
    {
      auto forward = memory_label("forward");
      a = pool.malloc(3_MiB, stream.get());
      auto first = memory_label("conv1");
      b = pool.malloc(5_MiB, stream.get());
    }
    auto backward = memory_label("backward");
    c = pool.malloc(700, stream.get());
    d = pool.malloc(1_MiB, stream.get());
    d = StoragePtr();
    d = pool.malloc(1_MiB, stream.get());  // from the pool
  }
  pool.malloc(9_MiB, stream.get());  // the hook is gone
  EXPECT_EQ(hook.report(),
            "(asked of the pool, asked of the driver)\n"
            "all (10.00 MiB, 12.00 MiB)\n"
            "  forward (8.00 MiB, 10.00 MiB)\n"
            "    conv1 (5.00 MiB, 6.00 MiB)\n"
            "  backward (2.00 MiB, 2.00 MiB)\n");
  hook.reset();
  EXPECT_EQ(hook.report(), "(asked of the pool, asked of the driver)\nall (0 bytes, 0 bytes)\n");
}

TEST_F(MemoryHooks, LabelsAreAThreadsOwn) {
  LineProfileHook hook({.callers = false});
  auto label = memory_label("here");
  std::thread elsewhere([&] {
    MemoryHookScope scope(hook);
    auto inner = memory_label("there");
    pool.malloc(100, stream.get());
  });
  elsewhere.join();
  EXPECT_EQ(hook.report().find("here (", 0), hook.report().find("there (") + 1) << hook.report();
  EXPECT_NE(hook.report().find("  there (512 bytes, 2.00 MiB)"), std::string::npos);
}

TEST_F(MemoryHooks, LineProfileShowsTheCallers) {
  LineProfileHook hook({.max_depth = 40, .hidden = ""});
  StoragePtr kept;
  {
    MemoryHookScope scope(hook);
    auto label = memory_label("step");
    kept = program_forward(pool, stream.get());
  }
  std::string report = hook.report();
  EXPECT_NE(report.find("\n  step (3.00 MiB, 4.00 MiB)\n    "), std::string::npos) << report;
  // Every frame is named or given as file+offset, and the whole sum reaches the innermost.
  std::istringstream lines(report);
  std::string line;
  int depth = 0;
  while (std::getline(lines, line)) {
    if (line.find("(3.00 MiB, 4.00 MiB)") != std::string::npos) ++depth;
  }
  EXPECT_GT(depth, 4) << report;
}

}  // namespace
}  // namespace rensa

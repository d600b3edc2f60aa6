// The host's memory at its end: each routine whose buffers, lists or texts cannot be had throws
// OutOfMemoryError, as it does for arrays, and leaves the process usable.
#include "rensa/core/host_memory.h"

#include <gmock/gmock.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <new>
#include <vector>

#include "rensa/array/random.h"
#include "tests/array/arrays.h"
#include "tests/array/routines.h"
#include "tests/optional_parts.h"
#include "tests/temporary_folder.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RENSA_TEST_REFUSES 0  // the sanitizers bring operator new of their own
#else
#define RENSA_TEST_REFUSES 1
#endif

// What is larger than this is refused.
namespace {
std::atomic<std::size_t> most_at_once{std::numeric_limits<std::size_t>::max()};
}  // namespace

#if RENSA_TEST_REFUSES
void* operator new(std::size_t size) {
  void* memory =
      size <= most_at_once.load(std::memory_order_relaxed) ? std::malloc(size ? size : 1) : nullptr;
  if (!memory) throw std::bad_alloc();
  return memory;
}
void* operator new[](std::size_t size) { return operator new(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace rensa {
namespace {

class LargestPiece {
 public:
  explicit LargestPiece(std::size_t bytes) { most_at_once = bytes; }
  ~LargestPiece() { most_at_once = std::numeric_limits<std::size_t>::max(); }
  LargestPiece(const LargestPiece&) = delete;
  LargestPiece& operator=(const LargestPiece&) = delete;
};

TEST(HostMemory, ItsEndIsTypedInEveryRoutine) {
  if (!RENSA_TEST_REFUSES) GTEST_SKIP() << "not under this sanitizer";
  testing::TemporaryFolder folder;
  DeviceScope scope(cpu());
  testing::RoutineTable table(1 << 17, 512, 8, cpu(), folder / "routine");
  int refused = 0;
  for (const auto& row : table.rows()) {
    SCOPED_TRACE(row.name);
    try {
      LargestPiece pieces(std::size_t{16} << 10);
      row.call();
    } catch (const OutOfMemoryError& error) {
      ++refused;
      EXPECT_THAT(error.what(), ::testing::HasSubstr("out of memory"));
    } catch (const std::exception& error) {
      EXPECT_TRUE(testing::left_out(error.what())) << error.what();
    }
    try {  // and with memory it works again
      row.call();
    } catch (const std::exception& error) {
      EXPECT_TRUE(testing::left_out(error.what())) << error.what();
    }
  }
  EXPECT_GT(refused, 5);
}

TEST(HostMemory, ItsEndIsTypedTowardsTheHost) {
  if (!RENSA_TEST_REFUSES) GTEST_SKIP() << "not under this sanitizer";
  Array a = xp::ones({1 << 16}, float64, cpu());
  LargestPiece pieces(std::size_t{64} << 10);
  EXPECT_THAT(testing::thrown<OutOfMemoryError>([&] { a.to_vector<double>(); }),
              ::testing::HasSubstr("to_vector"));
  EXPECT_THAT(testing::thrown<OutOfMemoryError>([&] {
                a.to_vector<bool>();
                a.to_vector<int>();
              }),
              ::testing::HasSubstr("to_vector"));
  EXPECT_THAT(testing::thrown<OutOfMemoryError>([&] { a.tobytes(); }),
              ::testing::HasSubstr("tobytes"));
}

TEST(HostMemory, ItsEndIsTypedInFiles) {
  if (!RENSA_TEST_REFUSES) GTEST_SKIP() << "not under this sanitizer";
  testing::TemporaryFolder folder;
  Array noise = xp::random::default_rng(3, cpu()).random({1 << 16}, float64);
  xp::save(folder / "a.npy", noise);
  xp::savez(folder / "a.npz", {{"a", noise}});
  xp::savez_compressed(folder / "b.npz", {{"a", xp::zeros({1 << 16}, float64, cpu())}});
  xp::savetxt(folder / "a.txt", noise[{Slice(1 << 13)}]);
  xp::NpzFile stored = xp::load_npz(folder / "a.npz"), packed = xp::load_npz(folder / "b.npz");
  const std::vector<std::function<void()>> calls = {
      [&] { xp::load(folder / "a.npy"); },
      [&] { xp::load_npz(folder / "a.npz"); },
      [&] { stored.get("a"); },
      [&] { packed.get("a"); },
      [&] {
        xp::savez_compressed(folder / "c.npz", {{"a", noise}});
      },
      [&] { xp::loadtxt(folder / "a.txt"); },
      [&] { xp::fromfile(folder / "a.npy", float64); }};
  int refused = 0;
  for (const auto& call : calls) {  // some go straight into an array
    try {
      LargestPiece pieces(std::size_t{100} << 10);
      call();
    } catch (const OutOfMemoryError&) {
      ++refused;
    }
  }
  EXPECT_GE(refused, 2);
}

TEST(HostMemory, ListsThatNoMachineHoldsAreNotBegun) {
  EXPECT_THROW(host_vector<double>("list", std::numeric_limits<std::int64_t>::max()),
               OutOfMemoryError);
  EXPECT_THROW(host_list<char>("list", most_host_memory() + 1), OutOfMemoryError);
  EXPECT_EQ(host_vector<int>("list", 3), std::vector<int>({0, 0, 0}));
  EXPECT_GE(host_list<int>("list", 3).capacity(), 3u);
}

}  // namespace
}  // namespace rensa

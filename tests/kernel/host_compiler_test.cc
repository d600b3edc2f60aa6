// The machine's compiler as kernels meet it: found, replaced, failing in its ways, and missing.
#include "rensa/kernel/host_compiler.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <filesystem>
#include <fstream>

#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/kernel/compiler.h"
#include "rensa/kernel/elementwise_kernel.h"
#include "rensa/kernel/reduction_kernel.h"
#include "tests/environment.h"
#include "tests/temporary_folder.h"

namespace rensa {
namespace {

namespace fs = std::filesystem;

class HostCompilerTest : public ::testing::Test {
 protected:
  HostCompilerTest() : real_(detail::find_host_compiler()) {}
  void SetUp() override {
    if (!real_) GTEST_SKIP() << "no compiler";
  }

  /// A program of that name in the folder `bin`.
  std::string script(const std::string& name, const std::string& text) const {
    fs::create_directories(folder_ / "bin");
    std::string path = folder_ / ("bin/" + name);
    testing::write_file(path, "#!/bin/sh\n" + text + "\n");
    EXPECT_EQ(chmod(path.c_str(), 0755), 0);
    return path;
  }
  /// The machine's compiler, which notes what it is asked for, under a version.
  std::string wrapper(const std::string& version) const {
    return script("wrapper", "if [ \"$1\" = --version ]; then echo '" + version +
                                 "'; exit 0; fi\necho compiled >> '" + (folder_ / "log") +
                                 "'\nexec '" + real_->path + "' \"$@\"");
  }
  int compilations() const {
    std::string log = fs::exists(folder_ / "log") ? testing::read_file(folder_ / "log") : "";
    return static_cast<int>(log.size() / std::string("compiled\n").size());
  }
  /// A kernel that no other test has, by name.
  static std::string text(const std::string& name, int value) {
    return "extern \"C\" void " + name +
           "(const void* const* a, long long, long long) { *(long long*)a[0] = " +
           std::to_string(value) + "; }";
  }
  static long long call(const std::string& name, int value) {
    long long result = 0;
    const void* arguments[] = {&result};
    detail::host_function(text(name, value), name)(arguments, 0, 1);
    return result;
  }
  /// What `f` throws in a process of its own, which has compiled nothing yet; "" for nothing.
  template <class F> std::string in_child(F&& f) const {
    pid_t child = fork();
    if (child == 0) {
      std::string error;
      try {
        f();
      } catch (const Error& e) {
        error = e.what();
      } catch (const std::exception& e) {
        error = std::string("not an Error: ") + e.what();
      }
      testing::write_file(folder_ / "error", error);
      _exit(::testing::Test::HasFailure());
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    return testing::read_file(folder_ / "error");
  }
  std::string error_of(const std::string& compiler) const {
    testing::EnvironmentScope cxx("CXX", compiler);
    return in_child([] { call("failing", 1); });
  }
  int entries() const {
    int count = 0;
    if (!fs::exists(folder_ / "cache")) return 0;
    for (const auto& e : fs::directory_iterator(folder_ / "cache")) {
      count += e.path().filename() != "lock";
    }
    return count;
  }

  testing::TemporaryFolder folder_;
  std::optional<detail::HostCompiler> real_;
  testing::EnvironmentScope cache_{"RENSA_KERNEL_CACHE", folder_ / "cache"};
};

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(HostCompilerTest, AReplacedCompilerCompilesAnew) {
  testing::EnvironmentScope cxx("CXX", wrapper("c++ 1.0"));
  auto run = [] { EXPECT_EQ(call("versioned", 7), 7); };
  EXPECT_EQ(in_child(run) + in_child(run), "");
  EXPECT_EQ(compilations(), 1);
  wrapper("c++ 2.0");
  EXPECT_EQ(in_child(run) + in_child(run), "");
  EXPECT_EQ(compilations(), 2);
}

TEST_F(HostCompilerTest, WarmKernelsNeedNoCompilerAndNoTemporaryFolder) {
  EXPECT_EQ(in_child([] { call("warm", 8); }), "");
  testing::EnvironmentScope cxx("CXX", ""), path("PATH", ""), tmp("TMPDIR", "/no/such/folder");
  EXPECT_FALSE(detail::find_host_compiler());
  EXPECT_EQ(in_child([] { EXPECT_EQ(call("warm", 8), 8); }), "");
  EXPECT_THROW(call("cold", 9), NotImplementedError);
}

// After a warm-up calls of such dtypes and layouts, of any size, find the kernels in the process:
// here without a folder that keeps them and without a compiler.
TEST_F(HostCompilerTest, KernelsAreCompiledAheadOfTheirCalls) {
  testing::EnvironmentScope no_cache("RENSA_KERNEL_CACHE", "");
  ElementwiseKernel scaled("T x", "T y", "y = 3 * x", "scaled_ahead");
  ReductionKernel total("T x", "T y", "x", "a + b", "y = a", "0", "total_ahead");
  Array x = xp::arange(6, float32), out = xp::zeros({6}, float32);
  {
    testing::EnvironmentScope cxx("CXX", wrapper("c++ 1.0"));
    scaled.compile({x});
    scaled.compile({x, out});
    total.compile({x});
    EXPECT_EQ(compilations(), 2);
    scaled.compile({xp::zeros({0}, float32)});
    EXPECT_EQ(compilations(), 2) << "nothing to compute, nothing to compile";
  }
  EXPECT_EQ(out.sum().item<float>(), 0) << "a warm-up runs nothing";
  testing::EnvironmentScope cxx("CXX", ""), path("PATH", "");
  EXPECT_EQ(scaled(x)[5].item<float>(), 15);
  EXPECT_EQ(scaled(xp::ones({1000}, float32)).sum().item<float>(), 3000);
  EXPECT_EQ(total(x).item<float>(), 15);
  EXPECT_THROW(scaled.compile({x.astype(float64)}), NotImplementedError) << "another dtype";
  EXPECT_THROW(total.compile({x, x}), ValueError) << "as the call";
}

TEST_F(HostCompilerTest, AFolderIsNoCompiler) {
  fs::create_directories(folder_ / "include/c++");
  std::string gxx = script("g++", "exec '" + real_->path + "' \"$@\"");
  testing::EnvironmentScope cxx("CXX", std::nullopt),
      path("PATH", (folder_ / "include") + ":" + (folder_ / "bin"));
  EXPECT_EQ(detail::find_host_compiler()->path, gxx);
}

TEST_F(HostCompilerTest, HowItEndedIsSaid) {
  EXPECT_SAYS(error_of(script("killed", "kill -KILL $$")), "killed by signal 9");
  std::string silent = error_of(script("silent", "exit 3"));
  EXPECT_SAYS(silent, "ended with status 3");
  EXPECT_SAYS(silent, "without a word");
  EXPECT_SAYS(error_of(script("says", "echo oh no; exit 1")), "oh no");
  std::string lazy = error_of(script("lazy", "exit 0"));
  EXPECT_SAYS(lazy, "made no library");
  // What -o names gets the front of a real library.
  EXPECT_SAYS(
      error_of(script("half", "while [ \"$1\" != -o ]; do shift; done\nhead -c 5000 '" +
                                  fs::read_symlink("/proc/self/exe").string() + "' > \"$2\"")),
      "half a library");
  testing::write_file(folder_ / "bin/none", "no program");
  chmod((folder_ / "bin/none").c_str(), 0755);
  EXPECT_SAYS(error_of(folder_ / "bin/none"), "could not be started");
  EXPECT_EQ(entries(), 0);
  EXPECT_EQ(error_of(real_->path), "");
}

// A daemon may have its children reaped for it: how the compiler ended is then not known.
TEST_F(HostCompilerTest, WithSigchldIgnored) {
  auto ignoring = [](auto f) {
    return [f] {
      signal(SIGCHLD, SIG_IGN);
      f();
    };
  };
  std::string bad = in_child(ignoring([] { detail::host_function("nonsense", "orphan"); }));
  EXPECT_SAYS(bad, "how is not known");
  EXPECT_SAYS(bad, "nonsense");
  EXPECT_EQ(entries(), 0);
  EXPECT_EQ(in_child(ignoring([] { EXPECT_EQ(call("orphan", 5), 5); })), "");
  EXPECT_EQ(entries(), 1);
}

TEST_F(HostCompilerTest, ATemporaryFolderThatIsMissingIsNamed) {
  testing::EnvironmentScope tmp("TMPDIR", "/no/such/folder");
  std::string text = in_child([] { call("homeless", 1); });
  EXPECT_SAYS(text, "homeless: no folder");
  EXPECT_SAYS(text, "TMPDIR");
}

// Two libraries are two, though descriptors are used again.
TEST_F(HostCompilerTest, EachLibraryIsLoaded) {
  for (int value : {1, 2, 3}) EXPECT_EQ(call("same_name", value), value);
  auto library = detail::compile_for_host(*real_, text("other", 1), "other");
  EXPECT_THROW(detail::load_host_function(library, "missing"), CompileError);
  EXPECT_THROW(detail::load_host_function(library.substr(0, library.size() / 2), "other"),
               CompileError);
  EXPECT_THROW(detail::load_host_function("", "other"), CompileError);
}

}  // namespace
}  // namespace rensa

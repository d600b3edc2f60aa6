// The disk cache of kernels: hits, keys, damage, who may have written there, and other processes.
#include "rensa/kernel/kernel_cache.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "rensa/core/error.h"
#include "tests/environment.h"
#include "tests/temporary_folder.h"

namespace rensa {
namespace {

namespace fs = std::filesystem;

class KernelCacheTest : public ::testing::Test {
 protected:
  /// What is loaded for a key: from the cache, or `value`, made now.
  std::string get(const std::vector<std::string>& parts, const std::string& value = "code",
                  std::optional<std::string> compiler = "compiler 1") {
    std::string got;
    detail::with_kernel_code(
        {parts, std::move(compiler)},
        [&](const std::string& code) {
          if (code == refused_) throw CompileError("cannot be loaded");
          got = code;
        },
        [&] {
          ++made_;
          return value;
        });
    return got;
  }
  std::string cache() const { return folder_ / "cache"; }
  /// The entries, without the file of locks.
  std::vector<fs::path> entries() const {
    std::vector<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(cache())) {
      if (entry.path().filename() != "lock") paths.push_back(entry.path());
    }
    return paths;
  }
  static mode_t mode(const fs::path& path) {
    struct stat s {};
    EXPECT_EQ(lstat(path.c_str(), &s), 0) << path;
    return s.st_mode & 07777;
  }

  testing::TemporaryFolder folder_;
  testing::EnvironmentScope variable_{"RENSA_KERNEL_CACHE", folder_ / "cache"};
  int made_ = 0;
  std::string refused_ = "what does not load";
};

TEST_F(KernelCacheTest, MakesOnce) {
  std::string code("a\0b\nc", 5);
  EXPECT_EQ(get({"x", "y"}, code), code);
  EXPECT_EQ(get({"x", "y"}, "other"), code);
  EXPECT_EQ(made_, 1);
}

TEST_F(KernelCacheTest, PartsOfAKeyAreToldApart) {
  get({"ab", "c"}), get({"a", "bc"}), get({"abc"}), get({"ab", "c", ""});
  EXPECT_EQ(made_, 4);
}

TEST_F(KernelCacheTest, ADamagedFileIsMadeAnew) {
  get({"x"});
  std::ofstream(entries().at(0), std::ios::app) << "more";
  EXPECT_EQ(get({"x"}, "again"), "again");
  EXPECT_EQ(get({"x"}), "again");
  fs::resize_file(entries().at(0), 10);
  EXPECT_EQ(get({"x"}, "anew"), "anew");
  EXPECT_EQ(made_, 3);
}

TEST_F(KernelCacheTest, WithoutAFolderItIsNone) {
  testing::EnvironmentScope none("RENSA_KERNEL_CACHE", "");
  get({"x"}), get({"x"});
  EXPECT_EQ(made_, 2);
  testing::EnvironmentScope nowhere("RENSA_KERNEL_CACHE", "/proc/no/such/place");
  EXPECT_EQ(get({"x"}), "code");
  testing::write_file(folder_ / "file", "");
  testing::EnvironmentScope file("RENSA_KERNEL_CACHE", folder_ / "file");
  EXPECT_EQ(get({"x"}), "code");
}

TEST_F(KernelCacheTest, FoldersAndFilesAreTheUsersAlone) {
  for (mode_t mask : {0, 0022, 0002}) {
    testing::EnvironmentScope deep("RENSA_KERNEL_CACHE",
                                   cache() + std::to_string(mask) + "/below/it");
    mode_t before = umask(mask);
    get({"x"});
    umask(before);
    fs::path at = detail::kernel_cache_folder();
    EXPECT_EQ(mode(at), 0700u);
    EXPECT_EQ(mode(at.parent_path()), 0700u);
    int files = 0;
    for (const auto& entry : fs::directory_iterator(at)) {
      EXPECT_EQ(mode(entry.path()), 0600u) << entry.path();
      ++files;
    }
    EXPECT_EQ(files, 2);  // and the locks
  }
}

TEST_F(KernelCacheTest, WhatOthersMayWriteIsNotTaken) {
  get({"x"});
  fs::path entry = entries().at(0);
  for (mode_t open : {0620, 0602}) {
    ASSERT_EQ(chmod(entry.c_str(), open), 0);
    EXPECT_EQ(get({"x"}, "mine"), "mine");
    EXPECT_EQ(mode(entry), 0600u);
  }
  for (mode_t open : {0770, 0707, 01777}) {
    ASSERT_EQ(chmod(cache().c_str(), open), 0);
    ::testing::internal::CaptureStderr();
    int before = made_;
    EXPECT_EQ(get({"x"}, "not kept"), "not kept");
    EXPECT_EQ(get({"x"}, "not kept"), "not kept");
    EXPECT_EQ(made_, before + 2);
    std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find(cache()), std::string::npos) << said;
    EXPECT_EQ(said.find('\n'), said.size() - 1) << said;  // once
  }
  ASSERT_EQ(chmod(cache().c_str(), 0755), 0);  // others may read
  EXPECT_EQ(get({"x"}), "mine");
}

TEST_F(KernelCacheTest, WhatIsSomebodyElsesIsNotTaken) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  get({"x"});
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(chown(entries().at(0).c_str(), kNobody, kNobody), 0);
  EXPECT_EQ(get({"x"}, "mine"), "mine");
  ASSERT_EQ(chown(cache().c_str(), kNobody, kNobody), 0);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(get({"x"}, "not kept"), "not kept");
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("user 65534"), std::string::npos);
}

TEST_F(KernelCacheTest, EntriesThatAreNoFiles) {
  get({"x"});
  fs::path entry = entries().at(0);
  testing::write_file(folder_ / "elsewhere", testing::read_file(entry.string()));
  fs::remove(entry);
  ASSERT_EQ(mkfifo(entry.c_str(), 0600), 0);
  EXPECT_EQ(get({"x"}, "after a pipe"), "after a pipe");  // would wait for ever
  EXPECT_EQ(get({"x"}), "after a pipe");
  fs::remove(entry);
  fs::create_symlink(folder_ / "elsewhere", entry);
  EXPECT_EQ(get({"x"}, "after a link"), "after a link");
  EXPECT_EQ(testing::read_file(folder_ / "elsewhere").substr(64), "code");  // and left alone
  fs::remove(entry);
  fs::create_directory(entry);
  EXPECT_EQ(get({"x"}, "beside a folder"), "beside a folder");
}

TEST_F(KernelCacheTest, WhatDoesNotLoadIsMadeAnewAndWhatNeverDidIsNotKept) {
  EXPECT_THROW(get({"x"}, refused_), CompileError);
  EXPECT_TRUE(entries().empty());
  EXPECT_EQ(get({"x"}, "good"), "good");
  refused_ = "good";  // of another system, now
  EXPECT_EQ(get({"x"}, "better"), "better");
  EXPECT_EQ(get({"x"}), "better");
  EXPECT_EQ(made_, 3);
}

TEST_F(KernelCacheTest, AnotherCompilerMakesItsOwn) {
  get({"x"}, "one", "compiler 1"), get({"x"}, "two", "compiler 2");
  EXPECT_EQ(made_, 2);
  EXPECT_EQ(get({"x"}, "", "compiler 1"), "one");
  EXPECT_EQ(get({"x"}, "", "compiler 2"), "two");
}

TEST_F(KernelCacheTest, WithoutACompilerTheNewestEntryDoes) {
  get({"x"}, "one", "compiler 1");
  fs::path one = entries().at(0);
  get({"x"}, "two", "compiler 2");
  get({"y"}, "another", "compiler 2");
  fs::last_write_time(one, fs::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_EQ(get({"x"}, "", std::nullopt), "one");
  refused_ = "one";
  EXPECT_EQ(get({"x"}, "", std::nullopt), "two");
  EXPECT_EQ(get({"z"}, "from make", std::nullopt), "from make");
  EXPECT_EQ(made_, 4);
}

TEST_F(KernelCacheTest, ManyAtOnceSeeWholeFiles) {
  std::string code(1 << 16, 'x');
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        detail::with_kernel_code(
            {{std::to_string(i)}, ""}, [&](const std::string& got) { wrong += got != code; },
            [&] { return code; });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// Eight processes that start at once make a kernel once.
TEST_F(KernelCacheTest, ProcessesWaitForTheOneThatMakes) {
  std::vector<pid_t> children;
  for (int c = 0; c < 8; ++c) {
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      std::string got = "nothing";
      detail::with_kernel_code(
          {{"x"}, ""}, [&](const std::string& code) { got = code; },
          [&] {
            std::ofstream(folder_ / "made", std::ios::app) << "m";
            usleep(100'000);  // the others come while it is being made
            return std::string("code");
          });
      _exit(got == "code" ? 0 : 1);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(testing::read_file(folder_ / "made"), "m");
}

TEST_F(KernelCacheTest, AKilledMakerHoldsNobodyUp) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    detail::with_kernel_code(
        {{"x"}, "compiler 1"}, [](const std::string&) {},
        [&]() -> std::string {
          (void)!write(ready[1], "!", 1);
          for (;;) pause();
        });
    _exit(1);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  kill(child, SIGKILL);
  EXPECT_EQ(get({"x"}, "mine"), "mine");
  waitpid(child, nullptr, 0);
  close(ready[0]), close(ready[1]);
}

}  // namespace
}  // namespace rensa

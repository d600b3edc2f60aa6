// The disk cache of kernels: hits, keys, damage, and folders that cannot be had.
#include "rensa/kernel/kernel_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "tests/temporary_folder.h"

namespace rensa {
namespace {

class KernelCacheTest : public ::testing::Test {
 protected:
  KernelCacheTest() { use(folder_ / "cache"); }
  ~KernelCacheTest() override {
    if (known_) setenv("RENSA_KERNEL_CACHE", before_.c_str(), 1);
    else unsetenv("RENSA_KERNEL_CACHE");
  }
  static void use(const std::string& folder) { setenv("RENSA_KERNEL_CACHE", folder.c_str(), 1); }
  std::string get(const std::vector<std::string>& key, const std::string& value = "code") {
    return detail::cached(key, [&] {
      ++made_;
      return value;
    });
  }

  testing::TemporaryFolder folder_;
  int made_ = 0;

 private:
  const char* variable_ = std::getenv("RENSA_KERNEL_CACHE");
  bool known_ = variable_ != nullptr;
  std::string before_ = known_ ? variable_ : "";
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
  for (const auto& entry : std::filesystem::directory_iterator(detail::kernel_cache_folder())) {
    std::ofstream(entry.path(), std::ios::app) << "more";
  }
  EXPECT_EQ(get({"x"}, "again"), "again");
  EXPECT_EQ(get({"x"}), "again");
  EXPECT_EQ(made_, 2);
}

TEST_F(KernelCacheTest, WithoutAFolderItIsNone) {
  use("");
  get({"x"}), get({"x"});
  EXPECT_EQ(made_, 2);
  use("/proc/no/such/place");
  EXPECT_EQ(get({"x"}), "code");
}

TEST_F(KernelCacheTest, ManyAtOnceSeeWholeFiles) {
  std::string code(1 << 16, 'x');
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        wrong += detail::cached({std::to_string(i)}, [&] { return code; }) != code;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace rensa

// What a machine has and what control groups grant. That each routine keeps to it:
// tests/array/host_memory_test.cc.
#include "rensa/core/host_memory.h"

#include <gtest/gtest.h>
#include <sys/sysinfo.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "tests/temporary_folder.h"

namespace rensa {
namespace {

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

class ControlGroups : public ::testing::Test {
 protected:
  void grant(const std::string& file, const std::string& text) {
    std::filesystem::path path = folder_ / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  std::int64_t of(const std::string& membership) {
    std::ofstream(folder_ / "membership") << membership;
    return memory_of_group(folder_.str(), folder_ / "membership");
  }
  testing::TemporaryFolder folder_;
};

TEST_F(ControlGroups, TheLeastOfAGroupAndThoseAboveIt) {
  EXPECT_EQ(memory_of_group(folder_.str(), folder_ / "nothing"), kUnlimited);
  EXPECT_EQ(of("0::/job/step\n"), kUnlimited);
  grant("job/step/memory.max", "max");
  EXPECT_EQ(of("0::/job/step\n"), kUnlimited);
  grant("job/memory.max", "3000000");
  EXPECT_EQ(of("0::/job/step\n"), 3000000);
  grant("job/step/memory.max", "2000000");
  EXPECT_EQ(of("0::/job/step\n"), 2000000);
  EXPECT_EQ(of("0::/job\n"), 3000000);
  EXPECT_EQ(of("0::/other\n"), kUnlimited);
  grant("memory.max", "1000000");  // a container that is shown its group as the root
  EXPECT_EQ(of("0::/\n"), 1000000);
  EXPECT_EQ(of("0::/a/path/outside/of/the/container\n"), 1000000);
}

TEST_F(ControlGroups, OfVersionOneToo) {
  grant("memory/job/memory.limit_in_bytes", "5000000");
  grant("cpu/job/memory.limit_in_bytes", "1");
  EXPECT_EQ(of("4:cpu,cpuacct:/job\n3:memory:/job\n0::/\n"), 5000000);
  EXPECT_EQ(of("4:cpu,cpuacct:/job\n"), kUnlimited);
  EXPECT_EQ(of("no line of that kind\n\n:\n"), kUnlimited);
}

TEST(MostHostMemory, IsNotMoreThanTheMachineHas) {
  struct sysinfo info {};
  ASSERT_EQ(::sysinfo(&info), 0);
  EXPECT_GT(most_host_memory(), 0);
  EXPECT_LE(most_host_memory(),
            static_cast<std::int64_t>((info.totalram + info.totalswap) * info.mem_unit));
}

}  // namespace
}  // namespace rensa

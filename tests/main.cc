// Runs the tests and says how many needed a GPU and how many of those were left out.
#include <cstdio>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>

#include "rensa/core/environment.h"
#include "tests/optional_parts.h"

namespace rensa::testing {
namespace {
int skipped = 0, ran = 0;
}
void count_skipped() { ++skipped; }
void count_gpu_test() { ++ran; }

bool quick() { return environment::flag("RENSA_TEST_QUICK").value_or(false); }

std::vector<Device> test_devices() {
  std::vector<Device> devices{cpu()};
  if (num_gpus() > 0) devices.push_back(gpu(0));
  return devices;
}

bool has_lapack() { return RENSA_TEST_LAPACK; }

std::vector<Device> linalg_devices() {
  std::vector<Device> devices = test_devices();
  if (!has_lapack()) devices.erase(devices.begin());
  return devices;
}

bool left_out(std::string_view message) {
  return !has_lapack() && message.find("build with RENSA_BLAS=ON") != message.npos;
}

std::string data_file(const std::string& name) {
  std::vector<std::filesystem::path> folders;
  if (auto set = environment::text("RENSA_TEST_DATA")) {
    folders = {*set};
  } else {
    folders = {std::filesystem::read_symlink("/proc/self/exe").parent_path() / "answers",
               RENSA_TEST_SOURCES "/answers", RENSA_TEST_SOURCES "/../docs"};
  }
  std::string tried;
  for (const auto& folder : folders) {
    if (std::filesystem::exists(folder / name)) return folder / name;
    tried += " " + folder.string();
  }
  throw std::runtime_error("no " + name + " in" + tried + "; RENSA_TEST_DATA names its folder");
}

namespace {
/// How many tests were skipped for each reason.
std::map<std::string, int> skips(const ::testing::UnitTest& unit) {
  std::map<std::string, int> counts;
  for (int i = 0; i < unit.total_test_suite_count(); ++i) {
    const auto& suite = *unit.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const auto& result = *suite.GetTestInfo(j)->result();
      if (!result.Skipped()) continue;
      std::string why;
      for (int k = 0; k < result.total_part_count(); ++k) {
        if (result.GetTestPartResult(k).skipped()) why = result.GetTestPartResult(k).message();
      }
      ++counts[why.substr(0, why.find('\n'))];
    }
  }
  return counts;
}
}  // namespace
}  // namespace rensa::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  int result = RUN_ALL_TESTS();
  const auto& unit = *::testing::UnitTest::GetInstance();
  std::printf("GPUs: %d; tests for a GPU: %d run, %d skipped\n", rensa::num_gpus(),
              rensa::testing::ran, rensa::testing::skipped);
  for (const auto& [why, count] : rensa::testing::skips(unit)) {
    std::printf("skipped: %d: %s\n", count, why.c_str());
  }
  std::printf("%d passed, %d failed, %d skipped\n", unit.successful_test_count(),
              unit.failed_test_count(), unit.skipped_test_count());
  return result;
}

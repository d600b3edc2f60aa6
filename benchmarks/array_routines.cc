// Every timed row of tests/array/routines.def on one device: microseconds per call, on vectors of
// 64 Mi elements on a GPU and 4 Mi on the CPU. benchmarks/peers/array_routines.py times the same
// rows in NumPy, CuPy and PyTorch.
//
//   array_routines [DEVICE [NAME ...]]
#include "tests/array/routines.h"

#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>

#include "benchmarks/timing.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/devices.h"

namespace {

using namespace rensa;

/// Median microseconds per call, of so many calls that a timing takes 20 ms.
double microseconds(const std::function<void()>& call, Device device) {
  call();
  double once = benchmarks::median_seconds(call, 1, device, 1);
  int calls = static_cast<int>(std::clamp(0.02 / once, 1.0, 1000.0));
  return benchmarks::median_seconds(call, calls, device, 0) * 1e6;
}

bool wanted(const char* name, int argc, char** argv) {
  if (argc <= 2) return true;
  for (int i = 2; i < argc; ++i) {
    if (std::strcmp(argv[i], name) == 0) return true;
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) try {
  Device device = argc > 1 ? Device(argv[1]) : try_gpu();
  DeviceScope scope(device);
  std::string path = (std::filesystem::temp_directory_path() / "rensa_routine").string();
  auto make = [&](std::int64_t n, std::int64_t r, std::int64_t t) {
    return testing::RoutineTable(n, r, t, device, path);
  };
  bool gpu = device.is_cuda();
  testing::RoutineTable table =
      gpu ? make(std::int64_t{1} << 26, 8192, 1024) : make(std::int64_t{1} << 22, 1024, 256);
  for (const testing::RoutineTable::Row& row : table.rows()) {
    if (!row.timed || !wanted(row.name, argc, argv)) continue;
    std::string name = std::string("array ") + row.name + " rensa";
    try {
      benchmarks::print_figure(name, microseconds(row.call, device), "us");
    } catch (const std::exception& error) {
      std::printf("%s: %s\n", name.c_str(), error.what());
    }
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

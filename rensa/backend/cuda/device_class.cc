// Classes of GPUs, by the names of their models.
#include "rensa/backend/cuda/device_class.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <vector>

#include "rensa/backend/cuda/check.h"

namespace rensa::cuda {

namespace {

struct DeviceClasses {
  std::mutex mutex;
  std::vector<std::string> names;
  std::array<std::atomic<int>, kMaxGpus> of_device;  // 1 + class, 0 unknown
};

DeviceClasses& device_classes() {
  static DeviceClasses& classes = *new DeviceClasses{};
  return classes;
}

}  // namespace

int find_device_class(const std::string& name) {
  DeviceClasses& classes = device_classes();
  std::lock_guard<std::mutex> hold(classes.mutex);
  auto it = std::find(classes.names.begin(), classes.names.end(), name);
  if (it == classes.names.end()) it = classes.names.insert(it, name);
  return static_cast<int>(it - classes.names.begin());
}

std::string device_class_name(int device_class) {
  DeviceClasses& classes = device_classes();
  std::lock_guard<std::mutex> hold(classes.mutex);
  return classes.names.at(static_cast<std::size_t>(device_class));
}

int device_class(Device device) {
  auto& known = device_classes().of_device.at(static_cast<std::size_t>(device.index));
  int value = known.load(std::memory_order_relaxed);
  if (value == 0) {
    cudaDeviceProp properties;
    RENSA_CUDA_CALL(cudaGetDeviceProperties(&properties, device.index));
    value = 1 + find_device_class(fmt::format("{} sm_{}{} x{}", properties.name, properties.major,
                                              properties.minor, properties.multiProcessorCount));
    known.store(value, std::memory_order_relaxed);
  }
  return value - 1;
}

}  // namespace rensa::cuda

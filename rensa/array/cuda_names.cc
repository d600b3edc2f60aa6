// Devices by number and by array, and the dummy device.
#include "rensa/array/cuda_names.h"

#include <ostream>

#include "rensa/core/thread_state.h"
#include "rensa/device/devices.h"

namespace rensa::cuda {

DeviceOrDummy::operator Device() const {
  return device_ ? *device_ : ThreadState::current().device;
}

void DeviceOrDummy::use() const {
  if (device_) device_->use();
}

std::string DeviceOrDummy::str() const { return device_ ? device_->str() : "dummy"; }

std::ostream& operator<<(std::ostream& os, const DeviceOrDummy& device) {
  return os << device.str();
}

DeviceOrDummy first_gpu(std::initializer_list<Device> devices) {
  for (Device device : devices) {
    if (device.is_cuda()) return device;
  }
  return {};
}

Device get_device_from_id(int id) {
  Device device = gpu(id);
  check_device(device);
  return device;
}

DeviceOrDummy get_device_from_id(None) { return {}; }

Device get_device(int id) { return get_device_from_id(id); }

Device get_device(None) { return ThreadState::current().device; }

}  // namespace rensa::cuda

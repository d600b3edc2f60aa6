// Limits of GPUs.
#include "rensa/device/limits.h"

#include "rensa/core/error.h"
#include "rensa/device/cuda_runtime.h"
#include "rensa/device/devices.h"

namespace rensa::cuda {

namespace {

void check_gpu(const char* what, Device device) {
  check_device(device);
  if (device.is_cpu()) throw DeviceError(std::string(what) + ": cpu is no GPU; name one, gpu(i)");
}

}  // namespace

std::size_t device_get_limit(Limit limit) { return device_get_limit(limit, current_gpu()); }
std::size_t device_get_limit(Limit limit, Device device) {
  check_gpu("device_get_limit", device);
  return runtime::get_limit(device, limit);
}

void device_set_limit(Limit limit, std::size_t value) {
  device_set_limit(limit, value, current_gpu());
}
void device_set_limit(Limit limit, std::size_t value, Device device) {
  check_gpu("device_set_limit", device);
  runtime::set_limit(device, limit, value);
}

}  // namespace rensa::cuda

// Limits of GPUs.
#include "rensa/device/limits.h"

#include <atomic>
#include <cstdint>
#include <limits>

#include "rensa/core/environment.h"
#include "rensa/core/error.h"
#include "rensa/device/cuda_runtime.h"
#include "rensa/device/devices.h"

namespace rensa::cuda {

namespace {

void check_gpu(const char* what, Device device) {
  check_device(device);
  if (device.is_cpu()) throw DeviceError(std::string(what) + ": cpu is no GPU; name one, gpu(i)");
}

std::atomic<std::size_t>& max_workspace_size() {
  static std::atomic<std::size_t> size(
      environment::number("RENSA_MAX_WORKSPACE_SIZE", 0, std::numeric_limits<std::int64_t>::max())
          .value_or(std::size_t{1} << 30));
  return size;
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

std::size_t get_max_workspace_size() { return max_workspace_size(); }
void set_max_workspace_size(std::size_t size) { max_workspace_size() = size; }

}  // namespace rensa::cuda

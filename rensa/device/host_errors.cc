#include "rensa/device/host_errors.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

namespace rensa::cuda {

namespace {

struct HostErrors {
  std::exception_ptr once;
  std::vector<LastingError*> lasting;
};

std::mutex& mutex() {  // for all of them
  static auto* mutex = new std::mutex;
  return *mutex;
}

std::atomic<int> known{0};  // errors of all devices

HostErrors& errors_of(Device device) {
  static auto* all = new std::array<HostErrors, kMaxGpus>;
  return (*all)[static_cast<std::size_t>(device.index)];
}

/// With the mutex held.
void keep(Device device, std::exception_ptr error) {
  std::exception_ptr& once = errors_of(device).once;
  if (once) return;
  once = std::move(error);
  ++known;
}

}  // namespace

void report_host_error(Device device, std::exception_ptr error) {
  std::lock_guard hold(mutex());
  keep(device, std::move(error));
}

LastingError::LastingError(Device device, std::exception_ptr error)
    : device_(device), error_(std::move(error)) {
  std::lock_guard hold(mutex());
  errors_of(device).lasting.push_back(this);
  ++known;
}

LastingError::~LastingError() {
  std::lock_guard hold(mutex());
  std::erase(errors_of(device_).lasting, this);
  --known;
  if (!thrown_) keep(device_, error_);
}

void throw_host_error(Device device) {
  if (known.load(std::memory_order_acquire) == 0) return;
  std::exception_ptr error;
  {
    std::lock_guard hold(mutex());
    HostErrors& errors = errors_of(device);
    if (errors.once) {
      error = std::exchange(errors.once, nullptr);
      --known;
    } else if (!errors.lasting.empty()) {
      errors.lasting.front()->thrown_ = true;
      error = errors.lasting.front()->error_;
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace rensa::cuda

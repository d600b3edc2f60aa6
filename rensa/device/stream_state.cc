// The scratch memory of a stream, its order among others, and its end.
#include "rensa/device/stream_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "rensa/core/error.h"
#include "rensa/device/cuda_runtime.h"
#include "rensa/device/memory_pool.h"
#include "rensa/device/stream.h"

namespace rensa::cuda {

std::shared_mutex& stream_order() {
  static auto* order = new std::shared_mutex;  // memory is given back at the very end
  return *order;
}

void order_handles(Device device, void* earlier, void* later) {
  runtime::set_device(device);
  struct Handle {
    void* event;
    ~Handle() { runtime::destroy_event(event); }  // once the driver is done with it
  } handle{runtime::create_event(device, {.timing = false})};
  runtime::record_event(handle.event, earlier);
  runtime::wait_event(later, handle.event);
}

StreamState::~StreamState() {
  release_from_pools(this);
  for (void* piece : memory_) runtime::free_device(piece);
  if (order_event_) runtime::destroy_event(order_event_);
  if (stand_in_) runtime::destroy_stream(stand_in_);
  if (owned_) runtime::destroy_stream(handle_);
}

void* StreamState::from_driver(std::size_t nbytes) {
  void* data = runtime::allocate_device(device_, nbytes);
  if (!data) {  // the pool may cache what the driver lacks
    memory_pool(device_).free_all_blocks();
    data = runtime::allocate_device(device_, nbytes);
  }
  if (!data) {
    throw OutOfMemoryError(
        fmt::format("out of memory on {}: {} bytes of workspace for a stream could not be had",
                    device_.str(), nbytes));
  }
  memory_.push_back(data);
  return data;
}

void* StreamState::workspace(std::size_t nbytes) {
  if (nbytes > workspace_bytes_) {
    constexpr std::size_t kUnit = std::size_t{1} << 20;
    // At least doubled: the older pieces, which running work may use, add up to no more than this.
    std::size_t size = std::max((nbytes + kUnit - 1) / kUnit * kUnit, 2 * workspace_bytes_);
    workspace_ = from_driver(size);
    workspace_bytes_ = size;
  }
  return workspace_;
}

void StreamState::reserve() {
  constexpr std::size_t kBytes = kSemaphores * sizeof(unsigned int);
  void* data = runtime::allocate_device(device_, kBytes);
  if (!data) {
    throw OutOfMemoryError(fmt::format(
        "out of memory on {}: {} bytes for a new stream could not be had", device_.str(), kBytes));
  }
  memory_.push_back(data);
  runtime::zero_async(data, kBytes, handle_);
  semaphores_ = static_cast<unsigned int*>(data);
}

void StreamState::wait_for(StreamState& earlier) {
  if (&earlier == this) return;
  std::lock_guard<SpinLock> hold(earlier.lock_);
  runtime::set_device(earlier.device_);
  if (!earlier.order_event_)
    earlier.order_event_ = runtime::create_event(earlier.device_, {.timing = false});
  runtime::record_event(earlier.order_event_, earlier.handle_);
  runtime::set_device(device_);
  runtime::wait_event(handle_, earlier.order_event_);
}

void StreamState::enter_capture(Capture* capture) {
  if (!stand_in_) stand_in_ = runtime::create_stream(device_, non_blocking, 0);
  order_handles(device_, handle_, stand_in_);
  order_handle_.store(stand_in_, std::memory_order_release);
  capture_.store(capture, std::memory_order_relaxed);
}

void StreamState::leave_capture() noexcept {
  capture_.store(nullptr, std::memory_order_relaxed);
  order_handle_.store(handle_, std::memory_order_release);
}

}  // namespace rensa::cuda

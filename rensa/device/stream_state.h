// StreamState: what stands behind a Stream: the driver's stream and the scratch memory of the
// operations that run on it. It lives until the last Stream, and the last array whose memory was
// allocated on it, is gone.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "rensa/core/device.h"
#include "rensa/device/operation.h"
#include "rensa/device/spin_lock.h"

namespace rensa::cuda {

class StreamState : public std::enable_shared_from_this<StreamState> {
 public:
  /// `owned`: the driver's stream is destroyed with this object.
  StreamState(Device device, void* handle, bool owned)
      : device_(device), handle_(handle), owned_(owned) {}
  ~StreamState();
  StreamState(const StreamState&) = delete;
  StreamState& operator=(const StreamState&) = delete;

  Device device() const { return device_; }
  void* handle() const { return handle_; }

  /// Scratch for one operation at a time; grows from the driver, never shrinks. `lock()` is held by
  /// whoever queues work that uses it. Throws OutOfMemoryError.
  void* workspace(std::size_t nbytes);
  std::size_t workspace_bytes() const { return workspace_bytes_; }
  /// kSemaphores counters, zero between operations; null before reserve().
  unsigned int* semaphores() const { return semaphores_; }
  /// Asks the driver for the counters, so that no later launch has to.
  void reserve();
  SpinLock& lock() { return lock_; }

  /// Work queued on this stream from now on starts after what `earlier` has queued so far.
  void wait_for(StreamState& earlier);

 private:
  void* from_driver(std::size_t nbytes);

  Device device_;
  void* handle_;
  bool owned_;
  SpinLock lock_;
  void* workspace_ = nullptr;
  std::size_t workspace_bytes_ = 0;
  std::vector<void*> memory_;  // every piece had from the driver: running work may use old ones
  unsigned int* semaphores_ = nullptr;
  void* order_event_ = nullptr;
};

}  // namespace rensa::cuda

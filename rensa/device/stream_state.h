// StreamState: what stands behind a Stream: the driver's stream and the scratch memory of the
// operations that run on it. It lives until the last Stream, and the last array whose memory was
// allocated on it, is gone.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <shared_mutex>
#include <vector>

#include "rensa/core/device.h"
#include "rensa/device/operation.h"
#include "rensa/device/spin_lock.h"

namespace rensa::cuda {

class Capture;  // device/stream_capture.h

/// Held by who makes a stream wait for another (shared), by who gives memory back to the driver,
/// which waits for a GPU (shared), and while the parts of one step go to the streams of several
/// GPUs. A part waits for the others while it runs, so nothing may come between them that waits for
/// one of the first parts and has a stream or the driver wait with it.
std::shared_mutex& stream_order();

/// Work queued on the driver's stream `later` from now on starts after what is queued on `earlier`,
/// of `device`, so far. Both may be of one capture: then it is an edge of the graph.
void order_handles(Device device, void* earlier, void* later);

class StreamState : public std::enable_shared_from_this<StreamState> {
 public:
  /// `owned`: the driver's stream is destroyed with this object.
  StreamState(Device device, void* handle, bool owned)
      : device_(device), handle_(handle), owned_(owned), order_handle_(handle) {}
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

  /// The stream whose work so far is this one's: itself, or, while it is captured, a stream that
  /// waits for what was queued before (an event recorded on this one would be captured as well).
  void* order_handle() const { return order_handle_.load(std::memory_order_acquire); }
  /// The capture in progress; null usually.
  Capture* capture() const { return capture_.load(std::memory_order_relaxed); }
  /// Before the driver is told of a capture, and after it has ended.
  void enter_capture(Capture* capture);
  void leave_capture() noexcept;

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
  void* stand_in_ = nullptr;  // the stream for order_handle() while this one is captured
  std::atomic<void*> order_handle_;
  std::atomic<Capture*> capture_{nullptr};
};

}  // namespace rensa::cuda

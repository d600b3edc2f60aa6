// Streams and events. A Stream is a handle; the state behind it lives until the last array whose
// memory was allocated on it is gone.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "rensa/core/device.h"

namespace rensa::cuda {

class StreamState;

enum StreamFlags : unsigned { default_stream_flags = 0, non_blocking = 1 };

class Event;

class Stream {
 public:
  /// A new stream on the current device (a GPU; GPU 0 when the CPU is current). `non_blocking`
  /// streams do not wait for the legacy null stream. Lower `priority` runs first.
  explicit Stream(StreamFlags flags = default_stream_flags, int priority = 0);
  Stream(Device device, StreamFlags flags = default_stream_flags, int priority = 0);
  explicit Stream(std::shared_ptr<StreamState> state) : state_(std::move(state)) {}

  /// The legacy null stream of `device`.
  static Stream null(Device device);

  Device device() const;
  /// The CUstream / cudaStream_t.
  void* handle() const;
  /// Waits for all work of this stream. Counted by sync_count().
  void synchronize() const;
  /// Whether all work is done; does not wait.
  bool done() const;
  /// Records `event` after the work queued so far.
  void record(const Event& event) const;
  /// Work queued from now on starts after `event`.
  void wait(const Event& event) const;
  /// Makes this the calling thread's current stream of its device.
  void use() const;

  StreamState* state() const { return state_.get(); }
  const std::shared_ptr<StreamState>& shared_state() const { return state_; }
  friend bool operator==(const Stream& a, const Stream& b) = default;

 private:
  std::shared_ptr<StreamState> state_;
};

/// A point in a stream's work. Timing is on unless `enable_timing` is false.
class Event {
 public:
  explicit Event(bool enable_timing = true);
  /// Waits until the recorded work is done. Counted by sync_count().
  void synchronize() const;
  bool done() const;
  void* handle() const;

 private:
  friend class Stream;
  struct State;
  std::shared_ptr<State> state_;  // the driver's event, made at the first record on its device
};

/// Milliseconds of device time between two recorded events that are done.
float elapsed_time(const Event& start, const Event& stop);

/// The calling thread's current stream of `device`: the device's default stream unless a
/// StreamScope or Stream::use says otherwise.
Stream current_stream(Device device);
/// As current_stream, without a counted handle: the launcher's way.
StreamState* current_stream_state(Device device);

/// Work queued from now on on `consumer`, a cudaStream_t of another library's on the same device,
/// starts after what `producer` has queued so far. Does not wait.
void order_foreign_stream(void* consumer, const Stream& producer);

class [[nodiscard]] StreamScope {
 public:
  explicit StreamScope(const Stream& stream);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  Device device_;
  std::shared_ptr<StreamState> previous_;
};

/// Waits for everything queued on `device`. Counted by sync_count(); throws what kernels reported.
void synchronize(Device device);

/// How often this process has waited for a device so far, or made a copy that waits (pageable
/// memory). What is not counted here does not wait.
std::int64_t sync_count();

}  // namespace rensa::cuda

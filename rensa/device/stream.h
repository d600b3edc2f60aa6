// Streams and events. A Stream is a handle; the state behind it lives until the last array whose
// memory was allocated on it is gone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rensa/core/device.h"

namespace rensa::cuda {

class StreamState;

/// CudaStreamNonBlocking's bit: the stream does not wait for the default one.
enum StreamFlags : unsigned { default_stream_flags = 0, non_blocking = 1 };

class Event;
class Graph;  // device/stream_graph.h

/// The numerically lowest and highest priority that streams of a device may have; lower runs first.
struct PriorityRange {
  int first, last;  // lowest and highest
};

class Stream {
 public:
  /// A new stream on the current device (a GPU; GPU 0 when the CPU is current). `non_blocking`
  /// streams do not wait for the legacy null stream. Lower `priority` runs first.
  explicit Stream(StreamFlags flags = default_stream_flags, int priority = 0);
  Stream(Device device, StreamFlags flags = default_stream_flags, int priority = 0);
  explicit Stream(std::shared_ptr<StreamState> state) : state_(std::move(state)) {}

  /// The legacy null stream of `device`.
  static Stream null(Device device);
  /// A stream that somebody else made (a cudaStream_t) and destroys, not before this handle and the
  /// arrays allocated on it are gone.
  static Stream external(void* handle, Device device);
  /// The calling thread's own stream of `device`, made at its first call there: CUDA's per-thread
  /// default stream, as an ordinary one.
  static Stream per_thread(Device device);
  static PriorityRange priority_range(Device device);  // those that `priority` may be

  Device device() const;  // the one it was made for
  /// The CUstream / cudaStream_t.
  void* handle() const;
  int priority() const;
  bool is_non_blocking() const;  // whether it does not wait for the null stream
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
  /// Calls `function` on a thread of the driver's after the work queued so far, before what is
  /// queued later. It must call nothing of CUDA's, nor free GPU arrays. What it throws, the next
  /// wait for this device throws. Does not wait.
  void launch_host_func(std::function<void()> function) const;

  /// From here, what the calling thread queues on this stream is not run but captured, until
  /// end_capture() makes it a Graph. The thread's allocations on the device come from a pool that
  /// the graph will own; arrays that the work reads or writes live as long as the graph; streams
  /// that wait for an event recorded here join in. Anything that waits throws SyncError meanwhile.
  /// Not for the legacy stream (ValueError). Begin and end on one thread; capture_graph() does it
  /// for a function, safely.
  void begin_capture() const;
  /// Throws ValueError without begin_capture, CudaError for work that cannot be captured or a
  /// joined stream that this one has not waited for.
  Graph end_capture() const;
  /// Ends a capture and forgets what it holds.
  void abort_capture() const noexcept;
  bool is_capturing() const;  // whether a capture is in progress

  StreamState* state() const { return state_.get(); }  // the library's own, for the launcher
  /// The same driver's stream.
  friend bool operator==(const Stream& a, const Stream& b) {
    return a.state_ == b.state_ || (a.handle() == b.handle() && a.device() == b.device());
  }

 private:
  std::shared_ptr<StreamState> state_;
};

struct EventOptions {
  bool timing = true;         // for elapsed_time()
  bool blocking = false;      // synchronize() sleeps instead of spinning
  bool interprocess = false;  // ipc_handle() may be given to other processes; without timing
};

/// A point in a stream's work. Timing is on unless `enable_timing` is false.
class Event {
 public:
  explicit Event(bool enable_timing = true);
  /// Throws ValueError for an interprocess event with timing.
  explicit Event(EventOptions options);
  /// An event that another process recorded: the bytes of its ipc_handle().
  static Event from_ipc_handle(const std::string& bytes, Device device);
  /// Records the event after the work queued so far, on `stream` or a device's current stream.
  void record(const Stream& stream) const;
  void record(Device device) const;
  /// Waits until the recorded work is done. Counted by sync_count().
  void synchronize() const;
  /// Whether the recorded work is done (or nothing is recorded); does not wait.
  bool done() const;
  void* handle() const;     // the CUevent / cudaEvent_t
  bool has_timing() const;  // whether elapsed times can be taken of it
  /// 64 bytes for from_ipc_handle() in another process. Throws ValueError unless the event is made
  /// with `interprocess` and recorded.
  std::string ipc_handle() const;

 private:
  friend class Stream;
  struct State;
  std::shared_ptr<State> state_;  // the driver's event, made at the first record on its device
};

/// Milliseconds of device time between two recorded events that are done. Does not wait: CudaError
/// while they are not done, ValueError where one has no timing or is not recorded.
float elapsed_time(const Event& start, const Event& stop);

/// The calling thread's current stream of `device`: the device's default stream unless a
/// StreamScope, Stream::use or set_per_thread_streams says otherwise.
Stream current_stream(Device device);
/// As current_stream, without a counted handle: the launcher's way.
StreamState* current_stream_state(Device device);

/// Work queued from now on on `consumer`, a cudaStream_t of another library's on the same device,
/// starts after what `producer` has queued so far. Does not wait.
void order_foreign_stream(void* consumer, const Stream& producer);

/// Makes a stream the calling thread's current one on its device, for a scope.
class [[nodiscard]] StreamScope {
 public:
  [[nodiscard]] explicit StreamScope(const Stream& stream);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  Device device_;
  std::shared_ptr<StreamState> previous_;
};

/// Whether each thread's default stream is Stream::per_thread instead of one that all share. Off
/// unless RENSA_PER_THREAD_STREAMS=1.
void set_per_thread_streams(bool on);

/// Waits for everything queued on `device`. Counted by sync_count(); throws what kernels reported.
void synchronize(Device device);

/// How often this process has waited for a device so far, or made a copy that waits (pageable
/// memory). What is not counted here does not wait.
std::int64_t sync_count();

/// In this scope a call of this thread that would wait for a device throws SyncError, naming the
/// operation, instead: finds what holds a program up.
class [[nodiscard]] ForbidSync {
 public:
  [[nodiscard]] ForbidSync();
  ~ForbidSync();
  ForbidSync(const ForbidSync&) = delete;
  ForbidSync& operator=(const ForbidSync&) = delete;

 private:
  bool previous_;
};
/// Lets waits through again inside a ForbidSync scope.
class [[nodiscard]] AllowSync {
 public:
  [[nodiscard]] AllowSync();
  ~AllowSync();
  AllowSync(const AllowSync&) = delete;
  AllowSync& operator=(const AllowSync&) = delete;

 private:
  bool previous_;
};

}  // namespace rensa::cuda

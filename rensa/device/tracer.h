// Tracer: what takes the operations of a function that fuse() traces. They are not run, and the
// arrays that they make have no memory.
#pragma once

#include <utility>

#include "rensa/device/launcher.h"

namespace rensa {

/// A recorder whose operations are not run. The thread's ThreadState::recorder while it traces.
class Tracer : public Recorder {
 public:
  /// Memory that stands for values: it has an address of its own and cannot be read.
  virtual StoragePtr allocate(std::int64_t nbytes, Device device) = 0;
  /// Throws NotImplementedError: `what` would wait for values that are not computed.
  [[noreturn]] virtual void refuse(const char* what) = 0;
  /// The recorder that the thread had before.
  virtual Recorder* outer() const = 0;
};

/// The trace in progress on this thread.
inline constinit thread_local Tracer* current_tracer = nullptr;

/// Called by what needs an array's memory as it is now.
inline void refuse_in_trace(const char* what) {
  if (current_tracer) current_tracer->refuse(what);
}

/// Called by what reads values on the host: a trace has none yet, and the replays of a recorded
/// step would not read theirs.
inline void read_on_host(const char* what) {
  refuse_in_trace(what);
  if (Recorder* recorder = ThreadState::current().recorder) recorder->cannot_record(what);
}

/// Tells a recording, also one around a trace, that host code of the step decides by something that
/// replays would not look at again.
inline void stay_eager(const char* reason) {
  Recorder* recorder = current_tracer ? current_tracer->outer() : ThreadState::current().recorder;
  if (recorder) recorder->cannot_record(reason);
}

/// Work of this scope is done at once, though the thread may be tracing: host values become an
/// array that a trace takes as an input.
class [[nodiscard]] Untraced {
 public:
  Untraced() : tracer_(std::exchange(current_tracer, nullptr)) {
    if (tracer_) ThreadState::current().recorder = tracer_->outer();
  }
  ~Untraced() {
    current_tracer = tracer_;
    if (tracer_) ThreadState::current().recorder = tracer_;
  }
  Untraced(const Untraced&) = delete;
  Untraced& operator=(const Untraced&) = delete;

 private:
  Tracer* tracer_;
};

}  // namespace rensa

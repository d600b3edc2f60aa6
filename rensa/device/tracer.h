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

/// Called by what reads values on the host.
inline void refuse_in_trace(const char* what) {
  if (current_tracer) current_tracer->refuse(what);
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

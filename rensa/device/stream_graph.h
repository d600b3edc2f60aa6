// Graph: work of a stream captured by Stream::begin_capture and end_capture, to be launched again
// and again at once. The addresses in it are fixed: a launch reads and writes the arrays that the
// captured work named. (rensa::capture records whole training steps, with new inputs and host
// values at each replay.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "rensa/device/stream.h"

namespace rensa::cuda {

class Capture;

class Graph {
 public:
  Graph() = default;
  /// Queues all of it on `stream`, of the graph's device (DeviceError), or on the current stream
  /// there. Launches of one graph follow one another, on whatever streams. Does not wait.
  void launch(const Stream& stream) const;
  void launch() const;
  /// Brings the graph to the device before its first launch. Does not wait.
  void upload(const Stream& stream) const;
  std::size_t num_nodes() const;  // of kernels, copies and what else it holds
  /// Bytes of device memory that the graph owns: what was allocated while it was captured, once for
  /// all launches.
  std::int64_t memory_bytes() const;
  /// The nodes and edges in Graphviz's language. CuPy's debug_dot_str.
  std::string debug_dot() const;
  /// The cudaGraphExec_t.
  void* handle() const;
  explicit operator bool() const { return impl_ != nullptr; }

 private:
  friend class Stream;
  struct Impl;
  const Impl& impl() const;
  std::shared_ptr<Impl> impl_;
};

/// Captures what `f` queues on `stream`, which is the thread's current one meanwhile. An exception
/// from `f` ends the capture and passes through.
template <class F> Graph capture_graph(const Stream& stream, F&& f) {
  StreamScope current(stream);
  stream.begin_capture();
  try {
    std::forward<F>(f)();
  } catch (...) {
    stream.abort_capture();
    throw;
  }
  return stream.end_capture();
}

}  // namespace rensa::cuda

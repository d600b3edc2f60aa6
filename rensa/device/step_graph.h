// StepGraph: a list of operations, of one GPU or several, as a CUDA graph for each. On each GPU its
// first nodes copy a launch's inputs and host numbers in, and its last ones copy the results out;
// they get their addresses in their kernel arguments, which are set anew for each launch, so
// nothing that a running graph reads is ever overwritten by the host. The graphs of several GPUs
// wait for each other by marks (step_parts.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "rensa/device/operation.h"
#include "rensa/device/storage.h"

namespace rensa::cuda {

/// One operation of a graph. Those of parallel branches have scratch of their own.
struct StepNode {
  Operation* operation;
  Device device;                  // that it runs on
  std::vector<int> dependencies;  // earlier nodes that it must follow
  std::size_t lane;               // from 0; nodes of one lane follow one another and share counters
  void* workspace;
  std::size_t workspace_bytes;
  bool urgent = true;          // of a longest chain of the graph, or between devices
  bool captured_once = false;  // between devices, or between ranks, which all capture it together
};

/// Memory of the graph's own that is copied into or out of.
struct StepPlace {
  Device device;
  void* data;
  std::int64_t nbytes;
  std::vector<int> writers;  // of a result: the nodes that write it
};

class StepGraph {
 public:
  /// Captures `nodes`, which run on `devices`. Every launch takes `num_slots` numbers of the
  /// host, 8 bytes each; an operation's HostScalar with a slot reads its number there. Throws
  /// CudaError where an operation cannot be captured, and for several GPUs where
  /// CUDA_LAUNCH_BLOCKING has the host wait for the first graph before it launches the next.
  StepGraph(const std::vector<Device>& devices, const std::vector<StepNode>& nodes,
            const std::vector<StepPlace>& inputs, const std::vector<StepPlace>& results,
            int num_slots);
  ~StepGraph();
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  /// Queues one run on the devices' current streams: on each after what it has queued so far and
  /// before what it queues next, with all that touches memory of its device. A launch on other
  /// streams than the one before waits for that. `inputs` and `results` are addresses on the
  /// places' devices.
  void launch(const std::vector<const void*>& inputs, const std::vector<std::uint64_t>& slots,
              const std::vector<void*>& results);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rensa::cuda

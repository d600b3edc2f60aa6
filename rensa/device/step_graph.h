// StepGraph: a list of operations as one CUDA graph. Its first nodes copy a launch's inputs and
// host numbers in, its last ones copy the results out; they get their addresses in their kernel
// arguments, which are set anew for each launch, so nothing that a running graph reads is ever
// overwritten by the host.
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
  std::vector<int> dependencies;  // earlier nodes that it must follow
  std::size_t lane;               // from 0; nodes of one lane follow one another and share counters
  void* workspace;
  std::size_t workspace_bytes;
};

/// Memory of the graph's own that is copied into or out of.
struct StepPlace {
  void* data;
  std::int64_t nbytes;
  std::vector<int> writers;  // of a result: the nodes that write it
};

class StepGraph {
 public:
  /// Captures `nodes` on `device`. `num_slots` host numbers of 8 bytes are had in every launch; an
  /// operation's HostScalar with a slot is pointed there. Throws CudaError where an operation
  /// cannot be captured.
  StepGraph(Device device, const std::vector<StepNode>& nodes, std::vector<StepPlace> inputs,
            std::vector<StepPlace> results, int num_slots);
  ~StepGraph();
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  /// Queues one run on the device's current stream; a launch on another stream than the one before
  /// waits for that. `inputs` and `results` are addresses on the device.
  void launch(const std::vector<const void*>& inputs, const std::vector<std::uint64_t>& slots,
              const std::vector<void*>& results);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rensa::cuda

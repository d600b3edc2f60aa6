// What of a recorded step is one GPU's, as a CUDA graph: nodes that bring the numbers of the host
// and the inputs in, the operations, and nodes that take the results out.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "rensa/backend/cuda/capture_kernels.h"
#include "rensa/device/operation.h"
#include "rensa/device/step_graph.h"
#include "rensa/device/step_parts.h"

namespace rensa::cuda {

using GraphNodes = std::vector<cudaGraphNode_t>;

/// Owns a stream that a graph is captured on.
class CaptureStream {
 public:
  explicit CaptureStream(Device device);
  ~CaptureStream();
  CaptureStream(const CaptureStream&) = delete;
  CaptureStream& operator=(const CaptureStream&) = delete;
  cudaStream_t get() const { return stream_; }

  void begin();
  cudaGraph_t end();

  /// What is queued next runs after `nodes`.
  void depend_on(GraphNodes nodes);
  /// The nodes that what is queued next would run after.
  GraphNodes frontier() const;
  /// The one that is the frontier alone: of a kernel that was queued last.
  cudaGraphNode_t last_node() const;

 private:
  std::size_t look_at_frontier(const cudaGraphNode_t** nodes) const;

  cudaStream_t stream_ = nullptr;
  bool capturing_ = false;
};

/// A kernel node whose argument is given anew for each launch. The driver is told where it is
/// another one than before, which takes it half a microsecond.
template <class Params> struct GivenNode {
  cudaGraphNode_t node = nullptr;
  const void* kernel = nullptr;
  CaptureLaunch dims{};
  Params given{};
  bool is_given = false;

  void give(cudaGraphExec_t exec, const Params& params);
};

/// Places that one kernel copies to or from, and which of the launch's addresses those are.
struct CopyGroup {
  std::vector<StepPlace> places;
  std::vector<std::size_t> addresses;  // in the launch's list
  std::vector<std::size_t> numbers;    // of the places among those of their GPU
  GivenNode<CopiesParams> node;

  CaptureLaunch launch() const;
};

/// The room of that kernel among the nodes whose blocks are largest; a whole multiprocessor, and
/// the whole GPU, where this library's runtime does not know it.
StepRoom room_of(const GraphNodes& nodes);

class PartGraph {
 public:
  /// Begins the capture. `inputs` and `results` are those of all GPUs.
  PartGraph(Device device, const std::vector<StepPlace>& inputs,
            const std::vector<StepPlace>& results, int num_slots, std::size_t num_lanes);
  ~PartGraph();
  PartGraph(const PartGraph&) = delete;
  PartGraph& operator=(const PartGraph&) = delete;

  /// Where the number of the host in `slot` stands when the graph runs.
  const void* slot_address(int slot) const { return scalar_block_->data() + 8 * slot; }

  // While it is captured:
  /// What brings numbers and inputs in, before all else.
  void add_copies_in();
  /// What a node that follows no other one follows.
  GraphNodes start() const;
  /// An operation after `before`; gives the nodes that what follows it has to follow. `early`: it
  /// may come to the processors while the one node before it still runs.
  GraphNodes add(const StepNode& step, GraphNodes before, bool early);
  /// The room that the operation takes. Captures it apart.
  StepRoom room_of(const StepNode& step);
  /// A kernel that tells other parts of a mark, or awaits theirs.
  GraphNodes add(const void* crossing_kernel, CrossingParams params, GraphNodes before);
  /// The results leave as soon as those of one kernel are there, beside what still runs: behind
  /// `before`, by this GPU's results in their order. Gives the last nodes.
  GraphNodes add_copies_out(const std::vector<GraphNodes>& before);
  /// Ends the capture. `last` are the nodes that none follows, and perhaps more; kernels among
  /// `hurried` start before others of it that wait for a processor. The graph has the priority of
  /// the stream that was current when the capture began, wherever it is launched.
  void finish(GraphNodes last, const GraphNodes& hurried);

  /// Before the next run, which will be on `stream`: the numbers of the host, `num_slots` of them,
  /// and the addresses, those of all GPUs.
  void set(StreamState* stream, const std::uint64_t* slots, const std::vector<const void*>& inputs,
           const std::vector<void*>& results);
  /// Queues the run, after the one before on whichever stream. Takes no lock.
  void launch(StreamState* stream);

 private:
  template <class Params>
  GivenNode<Params> queue(const void* kernel, CaptureLaunch dims, Params params);
  LaunchContext context_of(const StepNode& step, const CaptureStream& capturing);
  PrologueParams prologue(const std::uint64_t* slots) const;
  MoreScalarsParams more_scalars(const std::uint64_t* slots, int first) const;
  template <class F> void for_more_scalars(F&& f) const;
  void set_front(const std::uint64_t* slots, const std::vector<const void*>& sources);
  void set_back(const std::vector<void*>& destinations);
  void follow_last(cudaStream_t handle);

  Device device_;
  int num_slots_;
  StoragePtr scalar_block_, semaphores_;
  std::vector<CopyGroup> input_groups_;  // the prologue's first, which has no node of its own
  std::vector<CopyGroup> result_groups_;
  LaunchContext context_{};
  std::optional<CaptureStream> capturing_;
  GivenNode<PrologueParams> prologue_node_;
  std::vector<GivenNode<MoreScalarsParams>> more_scalars_nodes_;  // one behind the other, after it

  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
  cudaStream_t last_stream_ = nullptr;
  cudaEvent_t done_ = nullptr;
};

}  // namespace rensa::cuda

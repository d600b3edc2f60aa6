// How cuDNN computes a convolution: chosen by its heuristic or by timing, and kept per signature.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "rensa/functions/operations/convolution/cuda_graph.h"

namespace rensa::cuda {

class ConvolutionPlan {
 public:
  explicit ConvolutionPlan(ConvolutionExecution execution) : execution_(std::move(execution)) {}

  ConvolutionChoice choice(const operations::Convolution& op) const {
    return execution_.choice(op);
  }
  std::size_t workspace_bytes() const { return execution_.workspace_bytes(); }
  /// Queues it. Throws CudaError.
  void run(const operations::Convolution& op, const LaunchContext& context) const;
  /// The same: false where cuDNN fails.
  bool try_run(const operations::Convolution& op, const LaunchContext& context) const;

 private:
  ConvolutionExecution execution_;
};

using ConvolutionPlans = std::vector<std::shared_ptr<const ConvolutionPlan>>;

/// The plan for an operation's signature: from the process's cache, or made, in the place of the
/// one that was longest unused: as a plan file has it, by timing (op.autotune) or by cuDNN's
/// heuristic. While the device's current stream is being captured nothing is timed: the heuristic's
/// plan serves. Throws CudaError where cuDNN is missing or fails, and NotImplementedError where it
/// has no engine for it within the limit of workspace.
std::shared_ptr<const ConvolutionPlan> convolution_plan(const operations::Convolution& op);

/// The place of the fastest of `plans` by timing on scratch memory, among those that run and, where
/// op.deterministic, whose results repeat bit for bit; 0 where there is no room for the scratch.
/// Waits for the device. Throws CudaError where none runs.
std::size_t fastest_plan(const operations::Convolution& op, const ConvolutionPlans& plans);

}  // namespace rensa::cuda

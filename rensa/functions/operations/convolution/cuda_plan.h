// How cuDNN computes a convolution: chosen by its heuristic or by timing, and kept per signature.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "rensa/functions/operations/convolution/cuda_graph.h"

namespace rensa::cuda {

/// The convolution by cuDNN, the bias along with it or by a kernel of its own.
class CudnnPlan final : public operations::ConvolutionPlan {
 public:
  explicit CudnnPlan(ConvolutionExecution execution) : execution_(std::move(execution)) {}

  ConvolutionChoice choice(const operations::Convolution& op) const {
    return execution_.choice(op);
  }
  /// Whether cuDNN computes the bias, and proposes to compute relu behind it in the same way.
  bool joins_relu(const operations::Convolution& op) const override;
  std::size_t workspace_bytes(const operations::Convolution& op) const {
    return (op.relu ? *with_relu_ : execution_).workspace_bytes();
  }
  /// Queues it. Throws CudaError.
  void run(const operations::Convolution& op, const LaunchContext& context) const;
  /// The same: false where cuDNN fails.
  bool try_run(const operations::Convolution& op, const LaunchContext& context) const;

 private:
  void look_for_relu(const operations::Convolution& op) const;
  cudnnStatus_t queue(const operations::Convolution& op, const LaunchContext& context) const;

  ConvolutionExecution execution_;
  mutable std::once_flag relu_asked_for_;
  mutable std::optional<ConvolutionExecution> with_relu_;  // made when it is first asked for
};

using ConvolutionPlans = std::vector<std::shared_ptr<const CudnnPlan>>;

/// The plan for an operation's signature: from the process's cache, or made, in the place of the
/// one that was longest unused: as a plan file has it, by timing (op.autotune) or by cuDNN's
/// heuristic, which timing checks where it is known to fail (large input gradients of float32
/// without TF32 along 1 or 3 axes: engines 8 and 60 times slower than the next were seen). While
/// the device's current stream is being captured nothing is timed: the heuristic's plan serves.
/// Throws CudaError where cuDNN is missing or fails, and NotImplementedError where it has no engine
/// for it within the limit of workspace.
std::shared_ptr<const CudnnPlan> convolution_plan(const operations::Convolution& op);

/// The place of the fastest of `plans` by timing on scratch memory, among those that run and, where
/// op.deterministic, whose results repeat bit for bit; none where there is no room for the scratch.
/// Waits for the device. Throws CudaError where none runs.
std::optional<std::size_t> fastest_plan(const operations::Convolution& op,
                                        const ConvolutionPlans& plans);

/// The place of the first of `plans` that is not several times slower than another; as above. The
/// bound is wide so that the same one is found each time.
std::optional<std::size_t> first_fast_plan(const operations::Convolution& op,
                                           const ConvolutionPlans& plans);

}  // namespace rensa::cuda

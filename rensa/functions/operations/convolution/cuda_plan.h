// How cuDNN computes a convolution: engines chosen by its heuristic, kept per signature.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "rensa/backend/cuda/cudnn.h"
#include "rensa/functions/operations/convolution/convolution.h"

namespace rensa::cuda {

class ConvolutionPlan {
 public:
  /// Asks the library. Throws CudaError where it is missing or fails, and NotImplementedError where
  /// it has no deterministic engine within the limit of workspace.
  explicit ConvolutionPlan(const operations::Convolution& op);

  std::size_t workspace_bytes() const { return workspace_bytes_; }
  void run(const operations::Convolution& op, const LaunchContext& context) const;

 private:
  bool take(const char* operation, CudnnDescriptor config);

  std::vector<CudnnDescriptor> descriptors_;  // what the plan was made of and may refer to
  std::optional<CudnnDescriptor> plan_;
  std::size_t workspace_bytes_ = 0;
};

/// The plan for an operation's signature: from the process's cache, or made, in the place of the
/// one that was longest unused.
std::shared_ptr<const ConvolutionPlan> convolution_plan(const operations::Convolution& op);

}  // namespace rensa::cuda

// Which of the two ways computes attention on a GPU: cuDNN's engines or the kernels here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "rensa/core/thread_state.h"
#include "rensa/functions/operations/attention/attention.h"
#include "rensa/functions/operations/attention/cuda_graph.h"

namespace rensa::cuda {

/// All that the choice depends on beside cuDNN's version.
struct AttentionQuestion {
  Device device;
  UseCudnn use_cudnn = UseCudnn::automatic;
  std::size_t workspace_limit = 0;
  AttentionLayout layout;

  auto operator<=>(const AttentionQuestion& other) const = default;
};

/// The answer, which operations hold.
struct AttentionPlan {
  AttentionQuestion question;
  std::shared_ptr<const CudnnAttention> cudnn;  // null: the kernels here
  std::string refusal;                          // why it is null
  // What cuDNN is given at once: of all batches and groups those that its scratch has room for.
  std::int64_t batch = 0, groups = 0;

  /// Queues it all by cuDNN.
  void run(const char* operation, const AttentionAddresses& addresses, double scale,
           const LaunchContext& context) const;
};

/// The plan of an operation: the one that it holds, where that answers the same question, or the
/// process's, made at its first use. Throws NotImplementedError where `always` is asked for and
/// cuDNN does not compute it, with cuDNN's words.
const AttentionPlan& attention_plan(const operations::Attention& op);
const AttentionPlan& attention_plan(const operations::AttentionGrad& op);

}  // namespace rensa::cuda

// Attention on a GPU: by cuDNN or by the kernels here, as the plan says.
#include "rensa/functions/operations/attention/attention.h"
#include "rensa/functions/operations/attention/cuda_kernels.h"
#include "rensa/functions/operations/attention/cuda_plan.h"

namespace rensa::operations {

std::size_t Attention::workspace_bytes() const {
  if (given.query.view.device.is_cpu()) return 0;
  const cuda::AttentionPlan& plan = cuda::attention_plan(*this);
  return plan.cudnn ? plan.cudnn->workspace_bytes() : 0;
}

void Attention::run_cuda(const cuda::LaunchContext& context) {
  const cuda::AttentionPlan& plan = cuda::attention_plan(*this);
  if (!plan.cudnn) return cuda::run_attention(*this, context);
  cuda::AttentionAddresses addresses = {};
  addresses.query = given.query.view.data;
  addresses.key = given.key.view.data;
  addresses.value = given.value.view.data;
  addresses.out = out.view.data;
  addresses.lse = lse.view.data;
  plan.cudnn->run(name(), addresses, given.scale, context);
}

std::size_t AttentionGrad::workspace_bytes() const {
  if (given.query.view.device.is_cpu()) return 0;
  const cuda::AttentionPlan& plan = cuda::attention_plan(*this);
  return plan.cudnn ? plan.cudnn->workspace_bytes() : static_cast<std::size_t>(lse.view.nbytes());
}

void AttentionGrad::run_cuda(const cuda::LaunchContext& context) {
  const cuda::AttentionPlan& plan = cuda::attention_plan(*this);
  if (!plan.cudnn) return cuda::run_attention_grad(*this, context);
  plan.cudnn->run(
      name(),
      {given.query.view.data, given.key.view.data, given.value.view.data, out.view.data,
       lse.view.data, gout.view.data, gquery.view.data, gkey.view.data, gvalue.view.data},
      given.scale, context);
}

}  // namespace rensa::operations

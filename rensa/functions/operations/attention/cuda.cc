// Attention on a GPU: by cuDNN or by the kernels here, as the plan says.
#include "rensa/functions/operations/attention/attention.h"
#include "rensa/functions/operations/attention/cuda_kernels.h"
#include "rensa/functions/operations/attention/cuda_plan.h"

namespace rensa::operations {

namespace {

cuda::AttentionAddresses addresses_of(const AttentionGiven& given, const Operand& out,
                                      const Operand& lse) {
  cuda::AttentionAddresses addresses = {};
  addresses.query = given.query.view.data;
  addresses.key = given.key.view.data;
  addresses.value = given.value.view.data;
  addresses.out = out.view.data;
  addresses.lse = lse.view.data;
  return addresses;
}

}  // namespace

std::size_t Attention::workspace_bytes() const {
  if (given.query.view.device.is_cpu()) return 0;
  const cuda::AttentionPlan& chosen = cuda::attention_plan(*this);
  return chosen.cudnn ? chosen.cudnn->workspace_bytes() : 0;
}

void Attention::run_cuda(const cuda::LaunchContext& context) {
  const cuda::AttentionPlan& chosen = cuda::attention_plan(*this);
  if (!chosen.cudnn) return cuda::run_attention(*this, context);
  chosen.run(name(), addresses_of(given, out, lse), given.scale, context);
}

std::size_t AttentionGrad::workspace_bytes() const {
  if (given.query.view.device.is_cpu()) return 0;
  const cuda::AttentionPlan& chosen = cuda::attention_plan(*this);
  return chosen.cudnn ? chosen.cudnn->workspace_bytes()
                      : static_cast<std::size_t>(lse.view.nbytes());
}

void AttentionGrad::run_cuda(const cuda::LaunchContext& context) {
  const cuda::AttentionPlan& chosen = cuda::attention_plan(*this);
  if (!chosen.cudnn) return cuda::run_attention_grad(*this, context);
  cuda::AttentionAddresses addresses = addresses_of(given, out, lse);
  addresses.gout = gout.view.data;
  addresses.gquery = gquery.view.data;
  addresses.gkey = gkey.view.data;
  addresses.gvalue = gvalue.view.data;
  chosen.run(name(), addresses, given.scale, context);
}

}  // namespace rensa::operations

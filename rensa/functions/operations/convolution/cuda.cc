// Convolutions on a GPU: cuDNN.
#include "rensa/functions/operations/convolution/convolution.h"
#include "rensa/functions/operations/convolution/cuda_plan.h"

namespace rensa::operations {

namespace {

const cuda::CudnnPlan& plan_of(const Convolution& op) {
  if (!op.plan) op.plan = cuda::convolution_plan(op);
  return static_cast<const cuda::CudnnPlan&>(*op.plan);
}

}  // namespace

std::size_t Convolution::workspace_bytes() const {
  return x.view.device.is_cpu() ? 0 : plan_of(*this).workspace_bytes(*this);
}

void Convolution::run_cuda(const cuda::LaunchContext& context) {
  plan_of(*this).run(*this, context);
}

}  // namespace rensa::operations

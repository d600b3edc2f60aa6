// Convolutions on a GPU: cuDNN.
#include "rensa/functions/operations/convolution/convolution.h"
#include "rensa/functions/operations/convolution/cuda_plan.h"

namespace rensa::operations {

std::size_t Convolution::workspace_bytes() const {
  if (x.view.device.is_cpu()) return 0;
  if (!plan) plan = cuda::convolution_plan(*this);
  return plan->workspace_bytes();
}

void Convolution::run_cuda(const cuda::LaunchContext& context) { plan->run(*this, context); }

}  // namespace rensa::operations

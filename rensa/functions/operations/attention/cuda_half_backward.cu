// The gradients of attention of float16 and bfloat16 on tensor cores.
#include "rensa/functions/operations/attention/cuda_backward.cuh"

namespace rensa::cuda {

void launch_half_attention_grad(const LaunchContext& context, const AttentionArgs& args) {
  dispatch_widths<32>(args, [&]<int D, bool kGeneral>() {
    if (args.dtype == Dtype::float16) launch_backward<half_t, D, kGeneral>(context, args);
    else launch_backward<bfloat16_t, D, kGeneral>(context, args);
  });
}

}  // namespace rensa::cuda

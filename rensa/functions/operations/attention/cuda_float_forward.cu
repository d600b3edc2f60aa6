// Attention of float32 on tensor cores, by TF32 numbers.
#include "rensa/functions/operations/attention/cuda_forward.cuh"

namespace rensa::cuda {

void launch_float_attention(const LaunchContext& context, const AttentionArgs& args) {
  dispatch_widths<64>(args, [&]<int D, bool kGeneral>() {
    if (args.tf32) launch_forward<Tf32, D, kGeneral>(context, args);
    else launch_forward<SplitFloat, D, kGeneral>(context, args);
  });
}

}  // namespace rensa::cuda

// Attention of float16 and bfloat16 on tensor cores.
#include "rensa/functions/operations/attention/cuda_forward.cuh"

namespace rensa::cuda {

bool has_tensor_core_attention(const LaunchContext& context, const AttentionArgs& args) {
  if (args.dtype == Dtype::float64) return false;
  if (args.query.width > 128 || args.value.width > 128) return false;
  // Compiled for GPUs before Ampere the kernels are empty.
  auto kernel = attention_forward<half_t, 64, false>;
  return are_compiled_for<80>(context.device, reinterpret_cast<const void*>(kernel));
}

void launch_half_attention(const LaunchContext& context, const AttentionArgs& args) {
  dispatch_widths<32>(args, [&]<int D, bool kGeneral>() {
    if (args.dtype == Dtype::float16) launch_forward<half_t, D, kGeneral>(context, args);
    else launch_forward<bfloat16_t, D, kGeneral>(context, args);
  });
}

}  // namespace rensa::cuda

// Attention of float16 and bfloat16 on tensor cores.
#include "rensa/functions/operations/attention/cuda_forward.cuh"

namespace rensa::cuda {

bool has_tensor_core_attention(const LaunchContext& context, const AttentionArgs& args) {
  if (args.dtype == Dtype::float64) return false;
  if (args.query.width > 128 || args.value.width > 128) return false;
  // Compiled for GPUs before Ampere the kernels are empty.
  enum : signed char { unknown, no, yes };
  static std::array<std::atomic<signed char>, kMaxGpus> devices{};
  auto& known = devices[static_cast<std::size_t>(context.device.index)];
  signed char state = known.load(std::memory_order_relaxed);
  if (state == unknown) {
    cudaFuncAttributes attributes{};
    RENSA_CUDA_CHECK(args.operation,
                     cudaFuncGetAttributes(&attributes, attention_forward<half_t, 64, false>));
    state = attributes.ptxVersion >= 80 && attributes.binaryVersion >= 80 ? yes : no;
    known.store(state, std::memory_order_relaxed);
  }
  return state == yes;
}

void launch_half_attention(const LaunchContext& context, const AttentionArgs& args) {
  dispatch_widths<32>(args, [&]<int D, bool kGeneral>() {
    if (args.dtype == Dtype::float16) launch_forward<half_t, D, kGeneral>(context, args);
    else launch_forward<bfloat16_t, D, kGeneral>(context, args);
  });
}

}  // namespace rensa::cuda

// Arange on a GPU.
#include "rensa/operations/arange/arange.h"

#include "rensa/backend/cuda/kernel.cuh"

namespace rensa::cuda {

namespace {

template <class V> struct ArangeArgs {
  V start, step;
  char* out;
  Dtype dtype;
  std::int64_t size, stride;
};

template <class V>
__global__ void __launch_bounds__(kBlock) fill_arange(const __grid_constant__ ArangeArgs<V> args) {
  wait_for_previous();
  std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kBlock) + threadIdx.x;
  if (i >= args.size) return;
  store_any<V>(args.out + i * args.stride, args.dtype, args.start + static_cast<V>(i) * args.step);
}

template <class V>
void launch_arange(const operations::Arange& op, const LaunchContext& context, V start, V step) {
  const ArrayView& out = op.out.view;
  ArangeArgs<V> args = {start, step, out.data, out.dtype, out.size(), out.strides[0]};
  launch_kernel(op.name(), context, fill_arange<V>, ceil_div(args.size, kBlock), kBlock, args);
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

void Arange::run_cuda(const cuda::LaunchContext& context) {
  if (out.view.size() == 0) return;
  char kind = dtype_kind(out.view.dtype);
  if (start.is_integral() && step.is_integral() && kind != 'f' && kind != 'c') {
    return cuda::launch_arange(*this, context, start.as<unsigned long long>(),
                               step.as<unsigned long long>());
  }
  cuda::launch_arange(*this, context, start.real(), step.real());
}

}  // namespace rensa::operations

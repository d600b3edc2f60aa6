// The gradients of relu and bias on a GPU: a reduction that stores relu's gradient on its way.
#include "rensa/core/reduction_functors.h"
#include "rensa/functions/operations/relu_bias_grad/relu_bias_grad.h"
#include "rensa/operations/elementwise/elementwise.h"
#include "rensa/operations/reduce/cuda_kernels.cuh"
#include "rensa/operations/reduce/reduce.h"

#include "rensa/core/begin_functors.h"
namespace rensa::op {
#include "rensa/core/ufuncs/networks.def"
}  // namespace rensa::op
#include "rensa/core/end_functors.h"

namespace rensa::cuda {

namespace {

// `in` is gy, `second` y.
struct ReluBiasArgs : ReducePairArgs {
  char* gz;
};
using ReluBiasKernel = void (*)(ReluBiasArgs);

// gz = where(y > 0, gy, 0), stored on the way.
template <class T> struct ReluGradLoader {
  using Args = ReluBiasArgs;
  using Value = ComputeOf<T>;
  static constexpr int kWidth = 16 / sizeof(T);
  struct Data {
    Pack<T, kWidth> gy, y;
  };
  template <bool kFull>
  static __device__ __forceinline__ Data load(const ReluBiasArgs& args, std::int64_t offset,
                                              std::int64_t left) {
    return {load_vector<T, kFull>(args.in + offset, left, args.vector),
            load_vector<T, kFull>(args.second + offset, left, args.vector)};
  }
  // Turns gy into gz.
  static __device__ __forceinline__ void finish(const ReluBiasArgs& args, Data& data,
                                                std::int64_t offset, bool full, std::int64_t left) {
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      data.gy.value[j] = convert<T>(
          op::relu_grad{}(convert<Value>(data.gy.value[j]), convert<Value>(data.y.value[j])));
    }
    store_pack<T, kWidth>(reinterpret_cast<T*>(args.gz + offset), data.gy, left,
                          full || args.vector);
  }
  static __device__ __forceinline__ Value value(const ReluBiasArgs&, const Data& data, int j) {
    return convert<Value>(data.gy.value[j]);
  }
};

// The Reduce that ReluBiasGrad is bit-equal to: the sum of gz over axis 0.
operations::Reduce bias_sum(const operations::ReluBiasGrad& op) {
  operations::Reduce sum("sum", reduction::sum);
  sum.axes = 1;
  sum.compute = op.gz.view.dtype;
  sum.in = op.gz;
  sum.out = op.gb;
  sum.out.view.shape.insert(0, 1);
  sum.out.view.strides.insert(0, 0);
  return sum;
}

template <class T> ReluBiasKernel relu_bias_kernel() {
  using Reducer = RowReducer<red::sum, ComputeOf<T>>;
  return reduce_columns<Reducer, ReluGradLoader<T>>;
}

// Null where the two steps are done one after the other.
ReluBiasKernel relu_bias_kernel(const ReducePlan& plan) {
  if (!plan.by_columns || plan.reduced.ndim() != 1 || plan.kept_in.ndim() != 1) return nullptr;
  switch (plan.type) {
    case VectorType::f32: return relu_bias_kernel<float>();
    case VectorType::f16: return relu_bias_kernel<half_t>();
    case VectorType::bf16: return relu_bias_kernel<bfloat16_t>();
    case VectorType::f64: return relu_bias_kernel<double>();
    default: return nullptr;
  }
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

std::size_t ReluBiasGrad::workspace_bytes() const {
  return gb.view.size() == 0 ? 0 : cuda::plan_reduce(cuda::bias_sum(*this)).workspace_bytes;
}

void ReluBiasGrad::run_cuda(const cuda::LaunchContext& context) {
  if (gb.view.size() == 0) return;
  Reduce sum = cuda::bias_sum(*this);
  cuda::ReducePlan plan = cuda::plan_reduce(sum);
  cuda::ReluBiasKernel kernel = gz.view.size() > 0 ? cuda::relu_bias_kernel(plan) : nullptr;
  if (!kernel) {
    Elementwise grad(name(), ufunc::relu_grad);
    grad.compute = gz.view.dtype;
    grad.num_inputs = 2;
    grad.in[0].array = gy;
    grad.in[1].array = y;
    grad.out = gz;
    grad.run_cuda(context);
    return sum.run_cuda(context);
  }
  cuda::ReluBiasArgs args = {};
  static_cast<cuda::ReduceArgs&>(args) =
      cuda::reduce_args(plan, context, compute_type(sum.compute), false);
  args.vector &= cuda::is_aligned(gy.view.data, 16) && cuda::is_aligned(y.view.data, 16);
  args.in = gy.view.data;
  args.second = y.view.data;
  args.gz = gz.view.data;
  cuda::launch_kernel(name(), context, kernel, args.grid, cuda::kBlock, args);
}

}  // namespace rensa::operations

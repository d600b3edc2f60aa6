// Dot products of long vectors.
#include "rensa/operations/matmul/cuda_dot.h"

#include "rensa/core/reduction_functors.h"
#include "rensa/operations/reduce/cuda_pairs.cuh"

namespace rensa::cuda {

namespace {

using operations::Matmul;

template <class T> struct ProductLoader : PairLoader<T> {
  using Value = ComputeOf<T>;
  static __device__ __forceinline__ Value value(const ReducePairArgs&,
                                                const typename PairLoader<T>::Data& data, int j) {
    return convert<Value>(data.a.value[j]) * convert<Value>(data.b.value[j]);
  }
};

using DotKernel = void (*)(ReducePairArgs);

template <class T> DotKernel dot_kernel() {
  return reduce_rows<RowReducer<red::sum, ComputeOf<T>>, ProductLoader<T>>;
}

DotKernel dot_kernel(Dtype dtype) {
  switch (dtype) {
    case Dtype::float16: return dot_kernel<half_t>();
    case Dtype::bfloat16: return dot_kernel<bfloat16_t>();
    case Dtype::float32: return dot_kernel<float>();
    case Dtype::float64: return dot_kernel<double>();
    case Dtype::complex64: return dot_kernel<complex_t<float>>();
    default: return dot_kernel<complex_t<double>>();
  }
}

}  // namespace

bool is_long_dot(const Matmul& op, const MatmulLayout& layout) {
  constexpr std::int64_t kLong = 64 << 10;  // below, one block of the products' kernels will do
  const ArrayView &a = op.a.view, &b = op.b.view;
  std::int64_t size = itemsize(op.c.view.dtype);
  return layout.m == 1 && layout.n == 1 && layout.batch == 1 && layout.outer_count == 1 &&
         layout.k >= kLong && op.alpha == 1 && !op.bias.present() && !op.gate.present() &&
         op.activation == operations::Activation::none && a.strides[a.ndim() - 1] == size &&
         b.strides[b.ndim() - 2] == size;
}

std::size_t long_dot_workspace_bytes(const Matmul& op, const MatmulLayout& layout) {
  return flat_workspace_bytes(layout.k * itemsize(op.c.view.dtype));
}

void run_long_dot(const Matmul& op, const MatmulLayout& layout, const LaunchContext& context) {
  Dtype dtype = op.c.view.dtype;
  launch_pairs(op.name(), context, dot_kernel(dtype), op.a.view.data, op.b.view.data, layout.k,
               itemsize(dtype), op.c.view.data, dtype);
}

}  // namespace rensa::cuda

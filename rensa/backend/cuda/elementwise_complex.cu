// The floating functions of complex numbers: one kernel per type, which asks for the row as it
// runs.
#include "rensa/backend/cuda/elementwise.cuh"

namespace rensa::cuda {

namespace {

template <class V> __device__ __noinline__ V complex_function(Ufunc ufunc, V x) {
  switch (ufunc) {
#define RENSA_UFUNC(name, inputs, rule, expression)                             \
  case Ufunc::name:                                                             \
    if constexpr (DtypeRule::rule == DtypeRule::analytic) return op::name{}(x); \
    break;
#define RENSA_KERNEL(name, inputs, rule, expression) RENSA_UFUNC(name, inputs, rule, expression)
#include "rensa/core/ops.def"
#undef RENSA_UFUNC
#undef RENSA_KERNEL
    default: break;
  }
  return x;
}

template <class V>
__global__ void __launch_bounds__(kBlock)
    complex_kernel(const __grid_constant__ ElementwiseArgs args) {
  unsigned index = blockIdx.x * kBlock + threadIdx.x;
  if (index >= args.count) return;
  std::int64_t offset[4];
  args.indexer.offsets(index, offset);
  const ElementwiseArgs::Input& input = args.in[0];
  V x = input.data ? load_any<V>(input.data + offset[1], input.type) : number_of<V>(input);
  store_any<V>(args.out + offset[0], args.out_dtype, complex_function(args.ufunc, x));
}

}  // namespace

ElementwiseKernel complex_functions(ComputeType type) {
  return type == ComputeType::c64 ? complex_kernel<complex_t<float>>
                                  : complex_kernel<complex_t<double>>;
}

}  // namespace rensa::cuda

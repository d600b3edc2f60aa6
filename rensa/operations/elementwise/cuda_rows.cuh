// The elementwise kernels of the rows of RENSA_ROWS, a file of ops.def. What is compiled includes
// this one (rensa/CMakeLists.txt writes it, one file per subject).
#include "rensa/operations/elementwise/cuda_kernels.cuh"

#include "rensa/core/begin_functors.h"
namespace rensa::op {
struct copy;  // the rows that this file names
struct power;
struct floor_divide;
struct remainder;
#include RENSA_ROWS
}  // namespace rensa::op
#include "rensa/core/end_functors.h"

namespace rensa::cuda {

#define RENSA_UFUNC(name, inputs, rule, expression)
#define RENSA_INTERNAL(name, inputs, rule, expression)
#define RENSA_ON_BOOL(name, inputs, what) \
  template <> inline constexpr BoolRule kBoolRule<op::name> = BoolRule::what;
#include RENSA_ROWS
#undef RENSA_UFUNC
#undef RENSA_ON_BOOL
#undef RENSA_INTERNAL

namespace {

#define RENSA_INTERNAL(name, inputs, rule, expression) RENSA_UFUNC(name, inputs, rule, expression)

namespace number {
enum : int {
#define RENSA_UFUNC(name, inputs, rule, expression) name,
#include RENSA_ROWS
#undef RENSA_UFUNC
};
}  // namespace number

// The floating functions of complex numbers are one kernel per type, which is told the row in its
// arguments: they are too much code for a kernel each.
template <class V> __device__ __noinline__ V complex_function(int function, V x) {
  switch (function) {
#define RENSA_UFUNC(name, inputs, rule, expression)                             \
  case number::name:                                                            \
    if constexpr (DtypeRule::rule == DtypeRule::analytic) return op::name{}(x); \
    break;
#include RENSA_ROWS
#undef RENSA_UFUNC
    default: break;
  }
  return x;
}

template <class V>
__global__ void __launch_bounds__(kBlock)
    complex_kernel(const __grid_constant__ ElementwiseArgs args) {
  wait_for_previous();
  unsigned index = blockIdx.x * kBlock + threadIdx.x;
  if (index >= args.count) return;
  std::int64_t offset[4];
  args.indexer.offsets(index, offset);
  const ElementwiseArgs::Input& input = args.in[0];
  V x = input.data ? load_any<V>(input.data + offset[1], input.type) : number_of<V>(input);
  store_any<V>(args.out + offset[0], args.out_dtype, complex_function(args.function, x));
}

template <class Op, DtypeRule kRule>
inline constexpr bool kCostly =
    is_costly(kRule) || std::is_same_v<Op, op::power> || std::is_same_v<Op, op::floor_divide> ||
    std::is_same_v<Op, op::remainder>;

template <class Op, DtypeRule kRule, int N, ComputeType C>
constexpr void add_generic(ElementwiseKernels& kernels) {
  constexpr bool complex = C == ComputeType::c64 || C == ComputeType::c128;
  if constexpr (complex && kRule == DtypeRule::analytic) {
    kernels.generic[static_cast<int>(C)] = complex_kernel<typename ValueOf<C>::type>;
  } else if constexpr (rule_takes(kRule, C)) {
    kernels.generic[static_cast<int>(C)] =
        elementwise_generic<Op, typename ValueOf<C>::type, N, generic_unroll(kCostly<Op, kRule>)>;
  }
}

template <class Op, DtypeRule kRule, int N, VectorType kType>
constexpr void add_vector(ElementwiseKernels& kernels) {
  using T = typename StorageOf<kType>::type;
  constexpr ComputeType compute = kType == VectorType::f64   ? ComputeType::f64
                                  : kType >= VectorType::i32 ? ComputeType::i64
                                                             : ComputeType::f32;
  // Copies are in copy.cu; a result in uint8 has no vectors.
  constexpr bool has_vectors = !std::is_same_v<Op, op::copy> && kRule != DtypeRule::bit_count &&
                               (kType != VectorType::b8 || takes_bool_vectors(kRule));
  if constexpr (rule_takes(kRule, compute) && has_vectors) {
    constexpr bool costly = kCostly<Op, kRule>;
    constexpr int size = sizeof(T);
    using First = std::conditional_t<kRule == DtypeRule::where, bool, T>;
    using Out = std::conditional_t<gives_bool(kRule), bool, T>;
    kernels.vector[static_cast<int>(kType)] =
        elementwise_vector<Op, T, First, Out, N, vector_width(size),
                           vector_unroll(costly, size, N)>;
  }
}

template <class Op, DtypeRule kRule, int N> constexpr ElementwiseKernels kernels_of(int function) {
  ElementwiseKernels kernels = {};
  kernels.costly = kCostly<Op, kRule>;
  kernels.function = function;
  add_generic<Op, kRule, N, ComputeType::i64>(kernels);
  add_generic<Op, kRule, N, ComputeType::u64>(kernels);
  add_generic<Op, kRule, N, ComputeType::f32>(kernels);
  add_generic<Op, kRule, N, ComputeType::f64>(kernels);
  add_generic<Op, kRule, N, ComputeType::c64>(kernels);
  add_generic<Op, kRule, N, ComputeType::c128>(kernels);
  add_vector<Op, kRule, N, VectorType::f32>(kernels);
  add_vector<Op, kRule, N, VectorType::f16>(kernels);
  add_vector<Op, kRule, N, VectorType::bf16>(kernels);
  add_vector<Op, kRule, N, VectorType::f64>(kernels);
  add_vector<Op, kRule, N, VectorType::i32>(kernels);
  add_vector<Op, kRule, N, VectorType::i64>(kernels);
  add_vector<Op, kRule, N, VectorType::b8>(kernels);
  return kernels;
}

}  // namespace

namespace elementwise_rows {
#define RENSA_UFUNC(name, inputs, rule, expression) \
  extern const ElementwiseKernels name;             \
  const ElementwiseKernels name = kernels_of<op::name, DtypeRule::rule, inputs>(number::name);
#include RENSA_ROWS
#undef RENSA_UFUNC
#undef RENSA_INTERNAL
}  // namespace elementwise_rows

}  // namespace rensa::cuda

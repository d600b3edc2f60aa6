// The elementwise kernels as templates over a row of ops.def, and what makes their instances. Two
// kernels per row: one for arrays of one common dtype whose last axis is contiguous, in vectors of
// 16 bytes, and one for any dtypes and strides.
#pragma once

#if defined(__CUDACC__)
// Rows are written for signed values and instantiated for unsigned ones too.
#pragma nv_diag_suppress 186  // pointless comparison of unsigned integer with zero
#endif

#include <utility>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/backend/cuda/packed_conversion.cuh"

namespace rensa::cuda {

struct ElementwiseArgs {
  struct Input {
    const char* data;  // null: the number
    bool vector;       // vector kernel: contiguous along the last axis, not constant
    bool aligned;      // and its vectors move in one load
    ElementType type;  // generic kernel
    alignas(16) unsigned char number[16];  // a value V
  };
  Indexer<4> indexer;  // 0 is the output; over vectors or elements
  unsigned count;      // vectors or elements
  int function;        // complex_kernel
  int unroll;          // vectors or elements per thread, at most what the kernel is made for
  bool straight;       // vector kernel: one axis, every input contiguous or a number, full unroll
  bool aligned;        // and so are all inputs
  bool out_aligned;
  std::int64_t size;  // elements
  char* out;
  Dtype out_dtype;
  Input in[3];
};
using ElementwiseKernel = void (*)(ElementwiseArgs);

/// Whether a row of the rule computes more than it moves.
constexpr bool is_costly(DtypeRule rule) {
  return rule == DtypeRule::floating || rule == DtypeRule::exponent ||
         rule == DtypeRule::analytic || rule == DtypeRule::doubles;
}
/// Elements of `itemsize` bytes in one vector of the vector kernel.
constexpr int vector_width(int itemsize) { return 16 / itemsize; }
/// Threads of a block of the vector kernel, and vectors, or elements of the generic kernel, that
/// one of them works on. Many short blocks keep the memory busier than few long ones.
inline constexpr int kVectorBlock = 128;
constexpr int vector_unroll(bool costly, int itemsize, int inputs) {
  return costly && (itemsize == 8 || (itemsize == 2 && inputs > 1)) ? 1 : 2;
}
constexpr int generic_unroll(bool costly) { return costly ? 1 : 4; }
/// Rows whose kernels also take vectors of bool.
constexpr bool takes_bool_vectors(DtypeRule rule) {
  return rule == DtypeRule::any || rule == DtypeRule::real_bool || rule == DtypeRule::equality ||
         rule == DtypeRule::comparison || rule == DtypeRule::bitwise || rule == DtypeRule::where;
}
/// Rows that answer with truth.
constexpr bool gives_bool(DtypeRule rule) {
  return rule == DtypeRule::equality || rule == DtypeRule::comparison ||
         rule == DtypeRule::predicate || rule == DtypeRule::real_predicate;
}

/// The kernels of a row, from the file of its subject.
struct ElementwiseKernels {
  bool costly;
  int function;  // complex_kernel's number of the row
  ElementwiseKernel generic[kNumComputeTypes];
  ElementwiseKernel vector[kNumVectorTypes];  // null where the row does not take the type
};

#if defined(__CUDACC__)

template <class Op, class V, int N> __device__ __forceinline__ auto apply(const V (&x)[N]) {
  if constexpr (N == 1) return Op{}(x[0]);
  else if constexpr (N == 2) return Op{}(x[0], x[1]);
  else return Op{}(x[0], x[1], x[2]);
}

template <class V> __device__ __forceinline__ V number_of(const ElementwiseArgs::Input& input) {
  return *reinterpret_cast<const V*>(input.number);
}

/// Loads W elements of one input: a vector, or one element for all; of a number, nothing.
template <class T, int W>
__device__ __forceinline__ Elements<T, W> load_input(const ElementwiseArgs::Input& input,
                                                     std::int64_t offset, std::int64_t left) {
  Elements<T, W> elements = {};
  if (input.data == nullptr) return elements;
  if (input.vector) return load_elements<T, W>(input.data + offset, left, input.aligned);
#pragma unroll
  for (int j = 0; j < W; ++j) elements.set(j, input.data + offset);
  return elements;
}

/// Loads vector number `index` of a contiguous input, which has all of its elements.
template <class T, int W, bool kAligned>
__device__ __forceinline__ Elements<T, W> load_straight(const ElementwiseArgs::Input& input,
                                                        std::int64_t index) {
  Elements<T, W> elements = {};
  if (input.data == nullptr) return elements;
  const char* p = input.data + index * static_cast<std::int64_t>(W * sizeof(T));
  if (kAligned || input.aligned) {
    elements.load(p);
  } else {
#pragma unroll
    for (int j = 0; j < W; ++j) elements.set(j, p + j * sizeof(T));
  }
  return elements;
}

/// What a row comes to on bools (RENSA_ON_BOOL).
enum class BoolRule { none, both, either, one, alike, opposite };
template <class Op> inline constexpr BoolRule kBoolRule = BoolRule::none;

/// Such a row on four bools, by the bits of their bytes.
template <class Op> __device__ __forceinline__ unsigned apply_bits(unsigned a, unsigned b) {
  constexpr BoolRule kRule = kBoolRule<Op>;
  a = truth_marks(a), b = truth_marks(b);
  if constexpr (kRule == BoolRule::both) a &= b;
  else if constexpr (kRule == BoolRule::either) a |= b;
  else if constexpr (kRule == BoolRule::one) a ^= b;
  else if constexpr (kRule == BoolRule::alike) a ^= b ^ 0x80808080u;
  else a ^= 0x80808080u;
  return a >> 7;
}

/// What a thread of the vector kernel loads before it computes.
template <class T, class First, int N, int W, int U> struct VectorInputs {
  Elements<First, W> first[U];
  Elements<T, W> others[U][N > 1 ? N - 1 : 1];

  // Without a branch between the loads, so that all of them are in flight.
  template <bool kAligned>
  __device__ __forceinline__ void load_all(const ElementwiseArgs& args, unsigned begin) {
#pragma unroll
    for (int u = 0; u < U; ++u) {
      std::int64_t index = begin + u * kVectorBlock;
      first[u] = load_straight<First, W, kAligned>(args.in[0], index);
#pragma unroll
      for (int k = 1; k < N; ++k) {
        others[u][k - 1] = load_straight<T, W, kAligned>(args.in[k], index);
      }
    }
  }

  // The u-th group of elements as they are computed with.
  template <class V>
  __device__ __forceinline__ void values(const ElementwiseArgs& args, int u, V (&x)[N][W]) const {
#pragma unroll
    for (int k = 0; k < N; ++k) {
      if (args.in[k].data == nullptr) {
#pragma unroll
        for (int j = 0; j < W; ++j) x[k][j] = number_of<V>(args.in[k]);
        continue;
      }
#pragma unroll
      for (int j = 0; j < W; ++j) {
        x[k][j] =
            k == 0 ? first[u].template get<V>(j) : others[u][k > 0 ? k - 1 : 0].template get<V>(j);
      }
    }
  }

  __device__ __forceinline__ void keep() {
#pragma unroll
    for (int u = 0; u < U; ++u) {
      first[u].keep();
#pragma unroll
      for (int k = 1; k < N; ++k) others[u][k - 1].keep();
    }
  }

  // The u-th group of elements, wherever they lie; returns where the output's do.
  __device__ __forceinline__ std::int64_t load_one(const ElementwiseArgs& args, int u,
                                                   unsigned index) {
    std::int64_t left = args.size - static_cast<std::int64_t>(index) * W, offset[4];
    args.indexer.offsets(index, offset);
    first[u] = load_input<First, W>(args.in[0], offset[1], left);
#pragma unroll
    for (int k = 1; k < N; ++k) {
      others[u][k - 1] = load_input<T, W>(args.in[k], offset[k + 1], left);
    }
    return offset[0];
  }
};

// T is the inputs' dtype, First that of the first one (where's condition is bool).
template <class Op, class T, class First, class Out, int N, int W, int U>
__global__ void __launch_bounds__(kVectorBlock)
    elementwise_vector(const __grid_constant__ ElementwiseArgs args) {
  wait_for_previous();
  using V = ComputeOf<T>;
  constexpr bool kOnBits = std::is_same_v<T, bool> && N <= 2 && kBoolRule<Op> != BoolRule::none;
  unsigned number[2];
  if constexpr (kOnBits) {
    for (int k = 0; k < N; ++k) number[k] = number_of<V>(args.in[k]) != 0 ? 0x01010101u : 0;
  }
  unsigned begin = blockIdx.x * (kVectorBlock * args.unroll) + threadIdx.x;
  VectorInputs<T, First, N, W, U> in;
  std::int64_t target[U];
  std::int64_t block_end = (blockIdx.x + std::int64_t{1}) * (kVectorBlock * U * W);
  if (args.straight && block_end <= args.size) {  // most blocks of most calls
#pragma unroll
    for (int u = 0; u < U; ++u) {
      target[u] = (begin + std::int64_t{u} * kVectorBlock) * (W * sizeof(Out));
    }
    if (args.aligned) in.template load_all<true>(args, begin);
    else in.template load_all<false>(args, begin);
  } else {
#pragma unroll
    for (int u = 0; u < U; ++u) {
      unsigned index = begin + u * kVectorBlock;
      if (u >= args.unroll || index >= args.count) continue;
      target[u] = in.load_one(args, u, index);
    }
  }
  in.keep();
#pragma unroll
  for (int u = 0; u < U; ++u) {
    unsigned index = begin + u * kVectorBlock;
    if (u >= args.unroll || index >= args.count) continue;
    Pack<Out, W> result;
    if constexpr (kOnBits) {
      unsigned word[W / 4];
#pragma unroll
      for (int i = 0; i < W / 4; ++i) {
        unsigned x[2] = {args.in[0].data ? in.first[u].word[i] : number[0]};
        if constexpr (N == 2) x[1] = args.in[1].data ? in.others[u][0].word[i] : number[1];
        word[i] = apply_bits<Op>(x[0], x[1]);
      }
      memcpy(&result, word, sizeof(result));
    }
    if constexpr (!kOnBits) {
      V x[N][W];
      in.template values<V>(args, u, x);
      decltype(apply<Op>(std::declval<V(&)[N]>())) y[W];
#pragma unroll
      for (int j = 0; j < W; ++j) {
        V of[N];
#pragma unroll
        for (int k = 0; k < N; ++k) of[k] = x[k][j];
        y[j] = apply<Op>(of);
      }
      result = pack_of<Out>(y);
    }
    store_pack<Out, W>(reinterpret_cast<Out*>(args.out + target[u]), result,
                       args.size - static_cast<std::int64_t>(index) * W, args.out_aligned);
  }
}

template <class Op, class V, int N, int U>
__global__ void __launch_bounds__(kBlock)
    elementwise_generic(const __grid_constant__ ElementwiseArgs args) {
  wait_for_previous();
  unsigned begin = blockIdx.x * (kBlock * args.unroll) + threadIdx.x;
  Raw<V> raw[U][N];
  std::int64_t target[U];
#pragma unroll
  for (int u = 0; u < U; ++u) {
    unsigned index = begin + u * kBlock;
    if (u >= args.unroll || index >= args.count) continue;
    std::int64_t offset[4];
    args.indexer.offsets(index, offset);
    target[u] = offset[0];
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const ElementwiseArgs::Input& input = args.in[k];
      if (input.data) raw[u][k] = load_raw<V>(input.data + offset[k + 1], input.type.log2_size);
    }
  }
#pragma unroll
  for (int u = 0; u < U; ++u) {
    unsigned index = begin + u * kBlock;
    if (u >= args.unroll || index >= args.count) continue;
    V x[N];
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const ElementwiseArgs::Input& input = args.in[k];
      x[k] = input.data ? convert_raw<V>(raw[u][k], input.type) : number_of<V>(input);
    }
    store_any<V>(args.out + target[u], args.out_dtype, V(apply<Op>(x)));
  }
}

#endif  // __CUDACC__

}  // namespace rensa::cuda

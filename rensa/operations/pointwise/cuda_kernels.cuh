// The kernels of pointwise.def's functions as templates, and the table of their instances. Three
// kernels per function: one for arrays of one floating dtype that all lie flat, or are one element
// for all, in vectors of up to 16 bytes; one for matrices of one floating dtype (slices of columns,
// a row for all rows, an element for each row) whose rows lie flat, in vectors that all of them are
// aligned for; and one for any dtypes and strides.
#pragma once

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/backend/cuda/packed_conversion.cuh"
#include "rensa/operations/pointwise/pointwise_functors.h"
#include "rensa/operations/pointwise/pointwise_rows.h"

namespace rensa::cuda {

/// An input of the flat and the strided kernel: where it lies, or the number.
struct PointwiseInput {
  const char* data;                      // null: the number
  ElementType type;                      // strided kernel
  alignas(16) unsigned char number[16];  // a value V
};
struct PointwiseFlatArgs {
  std::int64_t size;  // elements
  int unroll;         // vectors per thread, at most what the kernel is made for
  bool aligned;       // every vector moves in one load or store
  bool any_single;    // some input is one element for all
  char* out[kMostPointwiseOutputs];
  PointwiseInput in[kMostPointwiseInputs];
  const char* single[kMostPointwiseInputs];  // where in[k] has no data: the one element, if any
};
/// An operand of the kernel for matrices. An input that is a number, or one element for each row,
/// has the data and the pitch of another one: the loads wait for no decision.
struct PointwiseMatrix {
  char* data;
  unsigned pitch;  // bytes from row to row
};
/// An input of one element for each row (one a channel of images, one a sample). Row r is row
/// r % inner of the outer index r / inner.
struct PointwiseRowElements {
  const char* data;
  std::int64_t outer, inner;  // bytes from element to element
};
/// What every launch reads of this lies together: constants come from memory line by line.
struct PointwiseMatrixArgs {
  unsigned count;             // vectors
  int width;                  // elements of a vector, which divide a row's
  FastDiv columns;            // vectors of a row
  unsigned numbers, spreads;  // bit k: input k is a number, one element for each row
  PointwiseMatrix operand[kMostPointwiseOutputs + kMostPointwiseInputs];  // outputs, then inputs
  std::uint64_t number[kMostPointwiseInputs];  // 8 bytes of elements that are all the number
  FastDiv inner;
  PointwiseRowElements spread[kMostPointwiseInputs];
};
struct PointwiseStridedArgs {
  unsigned count;  // elements
  Dtype out_dtype[kMostPointwiseOutputs];
  char* out[kMostPointwiseOutputs];
  PointwiseInput in[kMostPointwiseInputs];
  Indexer<kMostPointwiseOutputs + kMostPointwiseInputs> indexer;  // outputs, then inputs
};

/// Threads of a block of the flat kernel, and vectors that one of them works on.
inline constexpr int kFlatBlock = 128;
constexpr int flat_unroll(int inputs, int outputs) { return inputs + outputs <= 4 ? 2 : 1; }
/// Elements of a vector.
constexpr int flat_width(std::int64_t itemsize) { return static_cast<int>(16 / itemsize); }
/// Threads of a block of the kernel for matrices, and the most bytes of a vector.
inline constexpr int kMatrixBlock = 128, kMatrixBytes = 16;

struct PointwiseKernels {
  void (*flat[kNumVectorTypes])(PointwiseFlatArgs);
  void (*matrix[kNumVectorTypes])(PointwiseMatrixArgs);     // null: float64, which is rare
  void (*strided[kNumComputeTypes])(PointwiseStridedArgs);  // null: the row does not take the type
};
struct PointwiseTable {
  PointwiseKernels row[pointwise::kNumRows];
};

// Each puts the kernels of its subject into the table.
void add_pointwise_activation(PointwiseTable& table);
void add_pointwise_elementary(PointwiseTable& table);
void add_pointwise_loss(PointwiseTable& table);
void add_pointwise_recurrent(PointwiseTable& table);
void add_pointwise_special(PointwiseTable& table);

#if defined(__CUDACC__)

template <class V> __device__ __forceinline__ V number_of(const PointwiseInput& input) {
  return *reinterpret_cast<const V*>(input.number);
}

template <class Row, class T, int W, int U>
__global__ void __launch_bounds__(kFlatBlock)
    pointwise_flat(const __grid_constant__ PointwiseFlatArgs args) {
  wait_for_previous();
  using V = ComputeOf<T>;
  constexpr int N = pw::num_inputs<Row>, M = pw::num_outputs<Row>;
  std::int64_t begin = std::int64_t{blockIdx.x} * (kFlatBlock * args.unroll) + threadIdx.x;
  bool whole =
      args.unroll == U && (blockIdx.x + std::int64_t{1}) * (kFlatBlock * U * W) <= args.size;
  Vector<T, W> in[U][N];
  if (whole && args.aligned) {  // without a branch between the loads: all of them are in flight
#pragma unroll
    for (int u = 0; u < U; ++u) {
#pragma unroll
      for (int k = 0; k < N; ++k) {
        if (args.in[k].data == nullptr) continue;
        in[u][k].load(reinterpret_cast<const T*>(args.in[k].data) + (begin + u * kFlatBlock) * W);
      }
    }
  } else {
#pragma unroll
    for (int u = 0; u < U; ++u) {
      if (u >= args.unroll) continue;
      std::int64_t at = (begin + u * kFlatBlock) * W;
#pragma unroll
      for (int k = 0; k < N; ++k) {
        if (args.in[k].data == nullptr) continue;
        in[u][k].set(load_pack<T, W>(reinterpret_cast<const T*>(args.in[k].data) + at,
                                     args.size - at, args.aligned, convert<T>(0.0f)));
      }
    }
  }
  if (args.any_single) {
#pragma unroll
    for (int k = 0; k < N; ++k) {
      if (args.single[k] == nullptr) continue;
      Pack<T, W> pack;
      pack.fill(*reinterpret_cast<const T*>(args.single[k]));
#pragma unroll
      for (int u = 0; u < U; ++u) in[u][k].set(pack);
    }
  }
#pragma unroll
  for (int u = 0; u < U; ++u) {
#pragma unroll
    for (int k = 0; k < N; ++k) in[u][k].keep();
  }
#pragma unroll
  for (int u = 0; u < U; ++u) {
    if (u >= args.unroll) continue;
    V x[N][W], y[M][W];
#pragma unroll
    for (int k = 0; k < N; ++k) {
      if (args.in[k].data == nullptr && args.single[k] == nullptr) {
#pragma unroll
        for (int j = 0; j < W; ++j) x[k][j] = number_of<V>(args.in[k]);
        continue;
      }
#pragma unroll
      for (int j = 0; j < W; ++j) x[k][j] = in[u][k].value(j);
    }
#pragma unroll
    for (int j = 0; j < W; ++j) {
      V of[N], to[M];
#pragma unroll
      for (int k = 0; k < N; ++k) of[k] = x[k][j];
      pw::call<Row>(of, to);
#pragma unroll
      for (int k = 0; k < M; ++k) y[k][j] = to[k];
    }
    std::int64_t at = (begin + u * kFlatBlock) * W;
#pragma unroll
    for (int k = 0; k < M; ++k) {
      store_pack<T, W>(reinterpret_cast<T*>(args.out[k]) + at, pack_of<T>(y[k]), args.size - at,
                       args.aligned);
    }
  }
}

/// Up to 16 bytes of elements of 2 or 4 that are taken one after the other, or put one behind the
/// other: a loop over them need not be unrolled for them to be in registers.
template <class T> class ElementQueue {
 public:
  static constexpr int kBits = 8 * sizeof(T);
  template <int kBytes> __device__ __forceinline__ void load(const char* p) {
    if constexpr (kBytes == 16) {
      ulonglong2 words = *reinterpret_cast<const ulonglong2*>(p);
      low_ = words.x, high_ = words.y;
    } else if constexpr (kBytes == 8) {
      low_ = *reinterpret_cast<const Word*>(p);
    } else if constexpr (kBytes == 4) {
      low_ = *reinterpret_cast<const unsigned*>(p);
    } else {
      low_ = *reinterpret_cast<const unsigned short*>(p);
    }
  }
  /// The elements in `word`, over and over.
  __device__ __forceinline__ void fill(std::uint64_t word) { low_ = high_ = word; }
  /// The one element, over and over.
  __device__ __forceinline__ void repeat(T element) {
    Word bits = 0;
    memcpy(&bits, &element, sizeof(T));
    fill(bits * (sizeof(T) == 2 ? 0x0001000100010001ull : 0x0000000100000001ull));
  }
  __device__ __forceinline__ T take() {
    T first;
    memcpy(&first, &low_, sizeof(T));
    move_down();
    return first;
  }
  __device__ __forceinline__ void put(T last) {
    Word bits = 0;
    memcpy(&bits, &last, sizeof(T));
    move_down();
    high_ |= bits << (64 - kBits);
  }
  /// The last kBytes of what was put.
  template <int kBytes> __device__ __forceinline__ void store(char* p) const {
    if constexpr (kBytes == 16) {
      // As C++ the compiler makes two stores of it, to share one with vectors of 8 bytes.
      asm volatile("st.global.v2.u64 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(p)), "l"(low_),
                   "l"(high_)
                   : "memory");
    } else if constexpr (kBytes == 8) {
      *reinterpret_cast<Word*>(p) = high_;
    } else if constexpr (kBytes == 4) {
      *reinterpret_cast<unsigned*>(p) = static_cast<unsigned>(high_ >> 32);
    } else {
      *reinterpret_cast<unsigned short*>(p) = static_cast<unsigned short>(high_ >> 48);
    }
  }

 private:
  using Word = unsigned long long;
  __device__ __forceinline__ void move_down() {
    low_ = low_ >> kBits | high_ << (64 - kBits);
    high_ >>= kBits;
  }
  Word low_ = 0, high_ = 0;
};

/// An address in global memory that is computed here, and not anew in each branch behind this.
__device__ __forceinline__ char* known(char* address) {
  std::size_t place = __cvta_generic_to_global(address);
  asm volatile("" : "+l"(place));
  return static_cast<char*>(__cvta_global_to_generic(place));
}

/// Calls f with the bytes of a vector of `width` elements of T, as a constant.
template <class T, class F> __device__ __forceinline__ void visit_bytes(int width, F&& f) {
  constexpr int kSize = sizeof(T);
  if (width == 1) return f(std::integral_constant<int, kSize>());
  if (width * kSize == kMatrixBytes) return f(std::integral_constant<int, kMatrixBytes>());
  if (kSize == 4 || width == 4) return f(std::integral_constant<int, 8>());
  if constexpr (kSize == 2) f(std::integral_constant<int, 4>());
}

// A thread works on one vector, whose elements follow one another in a loop: launches of few
// elements, which have vectors of one, wait the longer the more code they bring.
template <class Row, class T>
__global__ void __launch_bounds__(kMatrixBlock)
    pointwise_matrix(const __grid_constant__ PointwiseMatrixArgs args) {
  wait_for_previous();
  using V = ComputeOf<T>;
  constexpr int N = pw::num_inputs<Row>, M = pw::num_outputs<Row>;
  unsigned index = blockIdx.x * kMatrixBlock + threadIdx.x;
  if (index >= args.count) return;
  unsigned row = args.columns.divide(index), column = index - row * args.columns.divisor;
  unsigned bytes_of_vector = static_cast<unsigned>(args.width) * unsigned{sizeof(T)};
  std::uint64_t offset = std::uint64_t{column} * bytes_of_vector;
  auto place = [&](int k) {
    return args.operand[k].data + offset + std::uint64_t{row} * args.operand[k].pitch;
  };
  const char* from[N];
#pragma unroll
  for (int k = 0; k < N; ++k) from[k] = known(place(M + k));
  ElementQueue<T> in[N], out[M];
  visit_bytes<T>(args.width, [&](auto bytes) {
#pragma unroll
    for (int k = 0; k < N; ++k) in[k].template load<bytes>(from[k]);
  });
  if (args.numbers != 0) {
#pragma unroll
    for (int k = 0; k < N; ++k) {
      if (args.numbers >> k & 1) in[k].fill(args.number[k]);
    }
  }
  if (args.spreads != 0) {
    unsigned outer = args.inner.divide(row), inner = row - outer * args.inner.divisor;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const PointwiseRowElements& spread = args.spread[k];
      if (!(args.spreads >> k & 1)) continue;
      std::int64_t at = outer * spread.outer + inner * spread.inner;
      in[k].repeat(*reinterpret_cast<const T*>(spread.data + at));
    }
  }
#pragma unroll 1
  for (int j = 0; j < args.width; ++j) {
    V x[N], y[M];
#pragma unroll
    for (int k = 0; k < N; ++k) x[k] = convert<V>(in[k].take());
    pw::call<Row>(x, y);
#pragma unroll
    for (int k = 0; k < M; ++k) out[k].put(convert<T>(y[k]));
  }
  char* to[M];
#pragma unroll
  for (int k = 0; k < M; ++k) to[k] = known(place(k));
  visit_bytes<T>(args.width, [&](auto bytes) {
#pragma unroll
    for (int k = 0; k < M; ++k) out[k].template store<bytes>(to[k]);
  });
}

template <class Row, class V>
__global__ void __launch_bounds__(kBlock)
    pointwise_strided(const __grid_constant__ PointwiseStridedArgs args) {
  wait_for_previous();
  constexpr int N = pw::num_inputs<Row>, M = pw::num_outputs<Row>;
  unsigned index = blockIdx.x * kBlock + threadIdx.x;
  if (index >= args.count) return;
  std::int64_t offset[M + N];
  args.indexer.offsets(index, offset);
  Raw<V> raw[N];
#pragma unroll
  for (int k = 0; k < N; ++k) {
    const PointwiseInput& input = args.in[k];
    if (input.data) raw[k] = load_raw<V>(input.data + offset[M + k], input.type.log2_size);
  }
  V x[N], y[M];
#pragma unroll
  for (int k = 0; k < N; ++k) {
    const PointwiseInput& input = args.in[k];
    x[k] = input.data ? convert_raw<V>(raw[k], input.type) : number_of<V>(input);
  }
  pw::call<Row>(x, y);
#pragma unroll
  for (int k = 0; k < M; ++k) store_any<V>(args.out[k] + offset[k], args.out_dtype[k], y[k]);
}

template <class Row, VectorType kType> constexpr void add_floating(PointwiseKernels& kernels) {
  using T = typename StorageOf<kType>::type;
  constexpr int kUnroll = flat_unroll(pw::num_inputs<Row>, pw::num_outputs<Row>);
  kernels.flat[static_cast<int>(kType)] = pointwise_flat<Row, T, flat_width(sizeof(T)), kUnroll>;
  if constexpr (sizeof(T) <= 4) {
    kernels.matrix[static_cast<int>(kType)] = pointwise_matrix<Row, T>;
  }
}
template <class Row, DtypeRule kRule, ComputeType C>
constexpr void add_strided(PointwiseKernels& kernels) {
  if constexpr (rule_takes(kRule, C)) {
    kernels.strided[static_cast<int>(C)] = pointwise_strided<Row, typename ValueOf<C>::type>;
  }
}
template <class Row, DtypeRule kRule>
void add_pointwise(PointwiseTable& table, pointwise::Index index) {
  PointwiseKernels& kernels = table.row[static_cast<int>(index)];
  add_floating<Row, VectorType::f32>(kernels);
  add_floating<Row, VectorType::f16>(kernels);
  add_floating<Row, VectorType::bf16>(kernels);
  add_floating<Row, VectorType::f64>(kernels);
  add_strided<Row, kRule, ComputeType::f32>(kernels);
  add_strided<Row, kRule, ComputeType::f64>(kernels);
  add_strided<Row, kRule, ComputeType::c64>(kernels);
  add_strided<Row, kRule, ComputeType::c128>(kernels);
}

#endif  // __CUDACC__

}  // namespace rensa::cuda

// The reduction kernels as templates over a reducer (a row of reductions.def, argmax, argmin) and a
// loader (what an input element is and how it is read), and what makes their instances. How they
// go over rows and columns is in portable/reduce_blocks.h.
#pragma once

#include "rensa/operations/reduce/cuda_plan.h"
#include "rensa/operations/reduce/cuda_reducers.cuh"

namespace rensa::red {
struct sum;
struct sum_of_squares;
struct count_nonzero;
struct prod;
struct max;
struct min;
struct any;
struct all;
}  // namespace rensa::red

namespace rensa::cuda {

struct ReduceArgs : ReduceBlocks {
  const char* in;
  char* out;
  Dtype out_dtype;
  ElementType type;                    // of `in`, for the kernels of any dtype
  bool vector;                         // `in` may be read 16 bytes at a time
  Indexer<2> kept;                     // outputs (rows) or outer indices (columns); 0 is the output
  Indexer<1> reduced;                  // vectors (rows) or rows (columns)
  std::int64_t in_stride, out_stride;  // columns: bytes from one to the next
};
using ReduceKernel = void (*)(ReduceArgs);

/// Of two inputs, elements of both at the same offsets.
struct ReducePairArgs : ReduceArgs {
  const char* second;
};

struct ReduceKernels {
  struct Pair {
    ReduceKernel rows, columns;
    ReduceKernel flat;  // of few rows of aligned vectors; null: the kernel of any rows
  };
  Pair any[kNumComputeTypes];    // over Raw elements
  Pair vector[kNumVectorTypes];  // null where the row does not take the type
};
/// The kernels of a reduction (cuda_sums.cu and so on), each by its name.
namespace reduction_rows {
extern const ReduceKernels argmax, argmin, deviations, variance, standard_deviation, nanmean;
}

/// The arguments of the kernel for `plan`.
ReduceArgs reduce_args(const ReducePlan& plan, const LaunchContext& context, ComputeType compute,
                       bool truth);

#if defined(__CUDACC__)

// --- loaders ---
// A vector has kWidth elements and gives kValues values: its elements, or one for all of them.
// load<kFull> reads the vector at byte `offset`, of which `left` elements are there; kFull: all of
// them, in one load. finish (only of reduce_columns) is called once for each vector before its
// values are asked for. Its Args are ReduceArgs, or derive from them.

template <class T, bool kFull>
__device__ __forceinline__ Pack<T, 16 / sizeof(T)> load_vector(const char* p, std::int64_t left,
                                                               bool vector) {
  constexpr int W = 16 / sizeof(T);
  if constexpr (kFull) return *reinterpret_cast<const Pack<T, W>*>(p);
  else return load_pack<T, W>(reinterpret_cast<const T*>(p), left, vector, T{});
}

/// Elements of T, 16 bytes at a time where they are aligned.
template <class T> struct VectorLoader {
  using Args = ReduceArgs;
  using Value = ComputeOf<T>;
  static constexpr int kWidth = sizeof(T) == 1 ? kBoolColumns : 16 / sizeof(T), kValues = kWidth;
  using Data = Elements<T, kWidth>;
  template <bool kFull>
  static __device__ __forceinline__ Data load(const ReduceArgs& args, std::int64_t offset,
                                              std::int64_t left) {
    if constexpr (!kFull) return load_elements<T, kWidth>(args.in + offset, left, args.vector);
    Data data = {};
    data.load(args.in + offset);
    return data;
  }
  static __device__ __forceinline__ Value value(const ReduceArgs&, const Data& data, int j) {
    return data.template get<Value>(j);
  }
  static __device__ __forceinline__ void finish(const ReduceArgs&, Data&, std::int64_t, bool,
                                                std::int64_t) {}
};

/// Elements of any dtype, one at a time.
template <class V> struct AnyLoader {
  using Args = ReduceArgs;
  using Value = V;
  static constexpr int kWidth = 1, kValues = 1;
  using Data = Raw<V>;
  template <bool kFull>
  static __device__ __forceinline__ Data load(const ReduceArgs& args, std::int64_t offset,
                                              std::int64_t) {
    return load_raw<V>(args.in + offset, args.type.log2_size);
  }
  static __device__ __forceinline__ V value(const ReduceArgs& args, const Data& data, int) {
    return convert_raw<V>(data, args.type);
  }
  static __device__ __forceinline__ void finish(const ReduceArgs&, Data&, std::int64_t, bool,
                                                std::int64_t) {}
};

/// 16 elements of bool at a time, of which the value is how many are not 0.
struct TruthLoader {
  using Args = ReduceArgs;
  using Value = long long;
  static constexpr int kWidth = 16, kValues = 1;
  struct Data {
    uint4 bytes;
  };
  template <bool kFull>
  static __device__ __forceinline__ Data load(const ReduceArgs& args, std::int64_t offset,
                                              std::int64_t left) {
    auto pack = load_vector<unsigned char, kFull>(args.in + offset, left, args.vector);
    Data data;
    memcpy(&data.bytes, &pack, sizeof(pack));
    return data;
  }
  static __device__ __forceinline__ Value value(const ReduceArgs&, const Data& data, int) {
    return __popc(truth_marks(data.bytes.x) | truth_marks(data.bytes.y) >> 1 |
                  truth_marks(data.bytes.z) >> 2 | truth_marks(data.bytes.w) >> 3);
  }
};

// --- kernels ---

__device__ __forceinline__ std::int64_t reduced_offset(const ReduceArgs& args, std::int64_t index) {
  if (args.reduced.ndim == 1) return index * args.reduced.stride[0][0];
  std::int64_t offset[1];
  args.reduced.offsets(static_cast<unsigned>(index), offset);
  return offset[0];
}

/// What reduce_blocks.h reduces: what Reducer takes of what Loader reads.
template <class Reducer, class Loader> struct Reduced : Reducer {
  using Args = typename Loader::Args;
  using Index = std::int64_t;
  using Acc = typename Reducer::Acc;
  using Data = typename Loader::Data;
  struct Place {
    std::int64_t offset[2];  // of the output, of its elements
  };
  using Base = std::int64_t;
  static constexpr int kWidth = Loader::kWidth, kValues = Loader::kValues;
  // Of blocks of values the larger ones take less to join.
  static constexpr int kRows = Reducer::kBlockwise ? 8 : 4;

  static __device__ __forceinline__ Place place(const Args& args, Index index) {
    Place place;
    args.kept.offsets(static_cast<unsigned>(index), place.offset);
    return place;
  }
  static __device__ __forceinline__ Base base(const Args& args, const Place& place, Index column) {
    return place.offset[1] + column * args.in_stride;
  }
  static __device__ __forceinline__ bool loads_whole(const Args& args) { return args.vector; }
  static __device__ __forceinline__ Base vector(const Args& args, Base base, Index k) {
    return base + reduced_offset(args, k);
  }
  template <bool kFull>
  static __device__ __forceinline__ Data load(const Args& args, Base vector, Index left) {
    return Loader::template load<kFull>(args, vector, left);
  }
  static __device__ __forceinline__ void finish(const Args& args, Base vector, Data& data,
                                                bool full, Index left) {
    Loader::finish(args, data, vector, full, left);
  }
  static __device__ __forceinline__ Acc take(const Args& args, Acc acc, const Data& data, int j,
                                             Index k, Index) {
    return Reducer::take(acc, Loader::value(args, data, j), k);
  }
  template <int U>
  static __device__ __forceinline__ Acc take_all(const Args& args, Acc acc, const Data (&data)[U]) {
    typename Reducer::Value values[U * kValues];
#pragma unroll
    for (int i = 0; i < U * kValues; ++i) {
      values[i] = Loader::value(args, data[i / kValues], i % kValues);
    }
    return Reducer::take_all(acc, values);
  }
  template <int U>
  static __device__ __forceinline__ void take_rows(const Args& args, Acc (&acc)[kWidth],
                                                   const Data (&data)[U]) {
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      typename Reducer::Value values[U];
#pragma unroll
      for (int u = 0; u < U; ++u) values[u] = Loader::value(args, data[u], j);
      acc[j] = Reducer::take_all(acc[j], values);
    }
  }
  static __device__ __forceinline__ void store(const Args& args, const Place& place, Index column,
                                               Index, Acc acc) {
    Reducer::store(args.out + place.offset[0] + column * args.out_stride, args.out_dtype, acc,
                   args.count);
  }
};

template <class Reducer, class Loader>
__global__ void __launch_bounds__(kBlock)
    reduce_rows(const __grid_constant__ typename Loader::Args args) {
  reduce_rows_of<Reduced<Reducer, Loader>>(args);
}

template <class Reducer, class Loader>
__global__ void __launch_bounds__(kBlock)
    reduce_columns(const __grid_constant__ typename Loader::Args args) {
  reduce_columns_of<Reduced<Reducer, Loader>>(args);
}

/// reduce_rows for few outputs of many vectors that are aligned and next to each other: so little
/// to keep in registers that all threads of a multiprocessor are resident.
template <class Reducer, class Loader>
__global__ void __launch_bounds__(kBlock, 8)
    reduce_flat(const __grid_constant__ typename Loader::Args args) {
  wait_for_previous();
  constexpr int W = Loader::kWidth, U = kReduceUnroll;
  unsigned slices = static_cast<unsigned>(args.slices);
  unsigned output = blockIdx.x / slices, slice = blockIdx.x % slices;
  using R = Reduced<Reducer, Loader>;
  typename R::Place place = R::place(args, output);
  std::int64_t first = slice * args.slice_vectors, base = place.offset[1] + first * 16;
  int vectors = static_cast<int>(min(args.slice_vectors, args.count / W - first));
  typename Reducer::Acc acc[W];
#pragma unroll
  for (int j = 0; j < W; ++j) acc[j] = Reducer::identity();
  auto take = [&](const typename Loader::Data& data) {
#pragma unroll
    for (int j = 0; j < W; ++j) acc[j] = Reducer::take(acc[j], Loader::value(args, data, j), 0);
  };
  auto load_once = [&](std::int64_t at) {
    uint4 bytes = __ldcs(reinterpret_cast<const uint4*>(args.in + at));
    typename Loader::Data data;
    static_assert(sizeof(data) == sizeof(bytes));
    memcpy(&data, &bytes, sizeof(data));
    return data;
  };
  int k = threadIdx.x;
#pragma unroll 1
  for (; k + (U - 1) * kBlock < vectors; k += U * kBlock) {
    typename Loader::Data data[U];
#pragma unroll
    for (int u = 0; u < U; ++u) {
      data[u] = load_once(base + (k + u * kBlock) * std::int64_t{16});
    }
#pragma unroll
    for (int u = 0; u < U; ++u) take(data[u]);
  }
  if (k < vectors) {
    typename Loader::Data data[U - 1];
#pragma unroll
    for (int u = 0; u < U - 1; ++u) {
      if (k + u * kBlock < vectors) data[u] = load_once(base + (k + u * kBlock) * std::int64_t{16});
    }
#pragma unroll
    for (int u = 0; u < U - 1; ++u) {
      if (k + u * kBlock < vectors) take(data[u]);
    }
  }
  int left = static_cast<int>(args.count % W);
  // The thread whose turn it is, as in reduce_slice: fused reductions have the same order.
  if (left > 0 && slice == slices - 1 && threadIdx.x == vectors % kBlock) {
    auto data = Loader::template load<false>(args, place.offset[1] + args.count / W * 16, left);
#pragma unroll
    for (int j = 0; j < W; ++j) {
      if (j < left) acc[j] = Reducer::take(acc[j], Loader::value(args, data, j), 0);
    }
  }
  finish_row<R>(args, place, join_accumulators<R>(acc), output, slice, threadIdx.x);
}

// --- the table ---

template <class Reducer, class Loader> constexpr ReduceKernels::Pair reduce_pair() {
  return {reduce_rows<Reducer, Loader>, reduce_columns<Reducer, Loader>, nullptr};
}
/// With a kernel for flat rows, where its registers leave room for all threads. It does not count
/// positions.
template <class Reducer, class Loader> constexpr ReduceKernels::Pair vector_pair() {
  ReduceKernels::Pair pair = reduce_pair<Reducer, Loader>();
  constexpr bool kFew = Loader::kWidth * sizeof(typename Reducer::Acc) <= 16;
  if constexpr (kFew && !Reducer::kBlockwise) pair.flat = reduce_flat<Reducer, Loader>;
  return pair;
}

// Adds the kernels of one row; ReducerOf<V> is its reducer, kRule says which V it takes.
template <template <class> class ReducerOf, ReductionRule kRule>
constexpr void add_reduction(ReduceKernels& kernels) {
#define RENSA_ANY(C)                                                                           \
  if constexpr (rule_takes(kRule, ComputeType::C)) {                                           \
    using V = ValueOf<ComputeType::C>::type;                                                   \
    kernels.any[static_cast<int>(ComputeType::C)] = reduce_pair<ReducerOf<V>, AnyLoader<V>>(); \
  }
  RENSA_ANY(i64)
  RENSA_ANY(u64)
  RENSA_ANY(f32)
  RENSA_ANY(f64)
  RENSA_ANY(c64)
  RENSA_ANY(c128)
#undef RENSA_ANY
#define RENSA_VECTOR(T, C)                                                \
  if constexpr (rule_takes(kRule, ComputeType::C)) {                      \
    using Loader = VectorLoader<typename StorageOf<VectorType::T>::type>; \
    kernels.vector[static_cast<int>(VectorType::T)] =                     \
        vector_pair<ReducerOf<typename Loader::Value>, Loader>();         \
  }
  RENSA_VECTOR(f32, f32)
  RENSA_VECTOR(f16, f32)
  RENSA_VECTOR(bf16, f32) RENSA_VECTOR(f64, f64) RENSA_VECTOR(i32, i64) RENSA_VECTOR(i64, i64)
#undef RENSA_VECTOR
}

template <class Row> struct OfRow { template <class V> using Reducer = RowReducer<Row, V>; };

// Adds the kernels over bool of a row that computes in integers: they count what is not 0.
template <TruthPost kPost> constexpr void add_truth(ReduceKernels& kernels) {
  using Reducer = TruthReducer<kPost>;
  kernels.vector[static_cast<int>(VectorType::b8)] = {
      reduce_rows<Reducer, TruthLoader>, reduce_columns<Reducer, VectorLoader<bool>>, nullptr};
}

template <class Row> constexpr void add_truth_of(ReduceKernels& kernels) {
  auto is = []<class... Rows>() { return (std::is_same_v<Row, Rows> || ...); };
  if constexpr (is.template operator()<red::any, red::max>()) {
    add_truth<TruthPost::any>(kernels);
  } else if constexpr (is.template operator()<red::all, red::min, red::prod>()) {
    add_truth<TruthPost::all>(kernels);
  } else if constexpr (is.template
                       operator()<red::sum, red::sum_of_squares, red::count_nonzero>()) {
    add_truth<TruthPost::count>(kernels);
  }
}

/// The kernels of a row of reductions.def.
template <class Row, ReductionRule kRule> constexpr ReduceKernels kernels_of_row() {
  ReduceKernels kernels = {};
  add_reduction<OfRow<Row>::template Reducer, kRule>(kernels);
  add_truth_of<Row>(kernels);
  return kernels;
}
/// The kernels of a reduction beside the table.
template <template <class> class ReducerOf, ReductionRule kRule>
constexpr ReduceKernels kernels_beside() {
  ReduceKernels kernels = {};
  add_reduction<ReducerOf, kRule>(kernels);
  return kernels;
}

#endif  // __CUDACC__

}  // namespace rensa::cuda

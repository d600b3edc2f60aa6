// The reduction kernels as templates over a reducer (a row of reductions.def, argmax, argmin) and a
// loader (what an input element is and how it is read), and what makes their instances. Two
// kernels: reduce_rows for outputs whose elements lie together, reduce_columns for outputs that lie
// together themselves. The order of the sums follows from the plan (cuda_plan.h) alone; alignment
// decides only how elements are loaded.
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

struct ReduceArgs {
  const char* in;
  char* out;
  Dtype out_dtype;
  ElementType type;    // of `in`, for the kernels of any dtype
  bool vector;         // `in` may be read 16 bytes at a time
  std::int64_t count;  // elements that one output is reduced from
  Indexer<2> kept;     // outputs (rows) or outer indices (columns); 0 is the output
  Indexer<1> reduced;  // vectors (rows) or rows (columns)
  void* partials;      // [output][slice] (rows) or [slice][output] (columns)
  unsigned* semaphores;

  std::int64_t outputs;
  std::int64_t slices;
  // reduce_rows
  int group;  // threads of an output
  std::int64_t vectors, slice_vectors;
  // reduce_columns
  int lanes;
  FastDiv tiles, tiles_x;
  std::int64_t width;                  // columns of one outer index
  std::int64_t in_stride, out_stride;  // bytes from column to column
  std::int64_t slice_rows;
};
using ReduceKernel = void (*)(ReduceArgs);

/// Of two inputs, elements of both at the same offsets.
struct ReducePairArgs : ReduceArgs {
  const char* second;
};

struct ReduceKernels {
  struct Pair {
    ReduceKernel rows, columns;
    ReduceKernel flat;  // few rows of aligned vectors, in blocks; null: as any rows
  };
  Pair any[kNumComputeTypes];    // over Raw elements
  Pair vector[kNumVectorTypes];  // null where the row does not take the type
};
/// The kernels of a reduction (cuda_sums.cu and so on), each by its name.
namespace reduction_rows {
extern const ReduceKernels argmax, argmin, deviations, nanmean;
}

/// The arguments of the kernel for `plan`.
ReduceArgs reduce_args(const ReducePlan& plan, const LaunchContext& context, ComputeType compute,
                       bool truth);
/// Blocks of that kernel.
std::int64_t reduce_grid(const ReducePlan& plan);

#if defined(__CUDACC__)

// --- loaders -------------------------------------------------------------------------------------
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

// --- outputs whose elements lie together ---------------------------------------------------------

inline constexpr int kReduceUnroll = 4;

/// Joins the accumulators of each `group` threads (a power of two); the group's first thread gets
/// the result. Called by the whole block.
template <class Reducer>
__device__ __forceinline__ typename Reducer::Acc join_group(typename Reducer::Acc acc, int group) {
  for (int offset = min(group, 32) / 2; offset > 0; offset /= 2) {
    acc = Reducer::combine(acc, shuffle_down(acc, offset));
  }
  if (group <= 32) return acc;
  __shared__ typename Reducer::Acc warps[kBlock / 32];
  __syncthreads();  // a second call must not overwrite what the first still reads
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps_of_group = group / 32;
  if (lane == 0) warps[warp] = acc;
  __syncthreads();
  if (warp % warps_of_group == 0) {
    acc = lane < warps_of_group ? warps[warp + lane] : Reducer::identity();
    for (int offset = warps_of_group / 2; offset > 0; offset /= 2) {
      acc = Reducer::combine(acc, shuffle_down(acc, offset));
    }
  }
  return acc;
}

template <class Reducer, int A>
__device__ __forceinline__ typename Reducer::Acc join_accumulators(
    typename Reducer::Acc (&acc)[A]) {
#pragma unroll
  for (int half = A / 2; half > 0; half /= 2) {
#pragma unroll
    for (int j = 0; j < half; ++j) acc[j] = Reducer::combine(acc[j], acc[j + half]);
  }
  return acc[0];
}

__device__ __forceinline__ std::int64_t reduced_offset(const ReduceArgs& args, std::int64_t index) {
  if (args.reduced.ndim == 1) return index * args.reduced.stride[0][0];
  std::int64_t offset[1];
  args.reduced.offsets(static_cast<unsigned>(index), offset);
  return offset[0];
}

template <class Reducer, class Loader>
__device__ __forceinline__ typename Reducer::Acc reduce_slice(const typename Loader::Args& args,
                                                              std::int64_t base, std::int64_t begin,
                                                              std::int64_t end, int lane) {
  constexpr int W = Loader::kWidth, N = Loader::kValues, U = kReduceUnroll;
  constexpr int A = Reducer::kBlockwise ? 1 : N;  // accumulators; a value's is j % A
  int group = args.group;
  typename Reducer::Acc acc[A];
#pragma unroll
  for (int j = 0; j < A; ++j) acc[j] = Reducer::identity();
  std::int64_t k = begin + lane;
  // Aligned vectors that are all there need no checks.
  std::int64_t whole = args.vector ? min(end, args.count / W) : begin;
  for (; k + (U - 1) * group < whole; k += U * group) {
    typename Loader::Data data[U];
#pragma unroll
    for (int u = 0; u < U; ++u) {
      data[u] = Loader::template load<true>(args, base + reduced_offset(args, k + u * group), W);
    }
    if constexpr (Reducer::kBlockwise) {
      typename Reducer::Value values[U * N];
#pragma unroll
      for (int i = 0; i < U * N; ++i) values[i] = Loader::value(args, data[i / N], i % N);
      acc[0] = Reducer::take_all(acc[0], values);
    } else {
#pragma unroll
      for (int u = 0; u < U; ++u) {
#pragma unroll
        for (int j = 0; j < N; ++j) {
          acc[j] = Reducer::take(acc[j], Loader::value(args, data[u], j), (k + u * group) * W + j);
        }
      }
    }
  }
  for (; k < end; k += group) {
    std::int64_t left = args.count - k * W;
    auto data = Loader::template load<false>(args, base + reduced_offset(args, k), left);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      if (j >= left) continue;
      acc[j % A] = Reducer::take(acc[j % A], Loader::value(args, data, j), k * W + j);
    }
  }
  return join_accumulators<Reducer>(acc);
}

/// Stores what the output's threads, of this slice of it, have; `offset` is the output's.
template <class Reducer>
__device__ __forceinline__ void finish_row(const ReduceArgs& args, typename Reducer::Acc acc,
                                           std::int64_t output, std::int64_t slice, int lane,
                                           std::int64_t offset) {
  using Acc = typename Reducer::Acc;
  let_next_come();
  acc = join_group<Reducer>(acc, args.group);
  if (args.slices > 1) {
    Acc* partials = static_cast<Acc*>(args.partials) + output * args.slices;
    if (lane == 0) partials[slice] = acc;
    if (!is_last_block(args.semaphores + output, static_cast<unsigned>(args.slices))) return;
    acc = Reducer::identity();
    for (std::int64_t s = lane; s < args.slices; s += kBlock)
      acc = Reducer::combine(acc, partials[s]);
    acc = join_group<Reducer>(acc, args.group);
  }
  if (lane == 0 && output < args.outputs) {
    Reducer::store(args.out + offset, args.out_dtype, acc, args.count);
  }
}

template <class Reducer, class Loader>
__global__ void __launch_bounds__(kBlock)
    reduce_rows(const __grid_constant__ typename Loader::Args args) {
  wait_for_previous();
  int lane = threadIdx.x & (args.group - 1);
  std::int64_t output, slice = 0;
  if (args.slices > 1) {  // then a block is one group
    unsigned slices = static_cast<unsigned>(args.slices);
    output = blockIdx.x / slices;
    slice = blockIdx.x % slices;
  } else {
    output = (blockIdx.x * static_cast<std::int64_t>(kBlock) + threadIdx.x) / args.group;
  }
  typename Reducer::Acc acc = Reducer::identity();
  std::int64_t offset[2] = {};
  if (output < args.outputs) {
    args.kept.offsets(static_cast<unsigned>(output), offset);
    std::int64_t begin = slice * args.slice_vectors;
    acc = reduce_slice<Reducer, Loader>(args, offset[1], begin,
                                        min(begin + args.slice_vectors, args.vectors), lane);
  }
  finish_row<Reducer>(args, acc, output, slice, lane, offset[0]);
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
  std::int64_t offset[2];
  args.kept.offsets(output, offset);
  std::int64_t first = slice * args.slice_vectors, base = offset[1] + first * 16;
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
    auto data = Loader::template load<false>(args, offset[1] + args.count / W * 16, left);
#pragma unroll
    for (int j = 0; j < W; ++j) {
      if (j < left) acc[j] = Reducer::take(acc[j], Loader::value(args, data, j), 0);
    }
  }
  finish_row<Reducer>(args, join_accumulators<Reducer>(acc), output, slice, threadIdx.x, offset[0]);
}

// --- outputs that lie together -------------------------------------------------------------------

/// Joins the columns of all warps; thread x * W + j gets column x * W + j of the tile, for
/// x < lanes. Called by the whole block.
template <class Reducer, int W>
__device__ __forceinline__ typename Reducer::Acc join_columns(typename Reducer::Acc (&acc)[W],
                                                              int lanes) {
  using Acc = typename Reducer::Acc;
  __shared__ Acc warps[kBlock / 32][32 * W];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
  for (int j = 0; j < W; ++j) {
    for (int offset = 16; offset >= lanes; offset /= 2) {
      acc[j] = Reducer::combine(acc[j], shuffle_down(acc[j], offset));
    }
    if (lane < lanes) warps[warp][lane * W + j] = acc[j];
  }
  __syncthreads();
  Acc result = Reducer::identity();
  if (threadIdx.x < lanes * W) {
    result = warps[0][threadIdx.x];
#pragma unroll
    for (int i = 1; i < kBlock / 32; ++i) result = Reducer::combine(result, warps[i][threadIdx.x]);
  }
  return result;
}

/// Takes every `below`-th row of [begin, end); the thread's vector of each starts at `base`.
template <class Reducer, class Loader, bool kFull>
__device__ __forceinline__ void add_rows(const typename Loader::Args& args, std::int64_t base,
                                         std::int64_t begin, std::int64_t end, int below,
                                         std::int64_t left,
                                         typename Reducer::Acc (&acc)[Loader::kWidth]) {
  constexpr int W = Loader::kWidth, U = kFull ? kReduceUnroll : 1;
  for (std::int64_t row = begin; row < end; row += U * below) {
    typename Loader::Data data[U];
    std::int64_t offset[U];
#pragma unroll
    for (int u = 0; u < U; ++u) {
      std::int64_t r = row + u * below;
      offset[u] = base + reduced_offset(args, r);
      if (r < end) data[u] = Loader::template load<kFull>(args, offset[u], left);
    }
    if constexpr (Reducer::kBlockwise && kFull) {
      if (row + (U - 1) * below < end) {
#pragma unroll
        for (int j = 0; j < W; ++j) {
          typename Reducer::Value values[U];
#pragma unroll
          for (int u = 0; u < U; ++u) values[u] = Loader::value(args, data[u], j);
          acc[j] = Reducer::take_all(acc[j], values);
        }
        continue;
      }
    }
#pragma unroll
    for (int u = 0; u < U; ++u) {
      std::int64_t r = row + u * below;
      if (r >= end) continue;
      Loader::finish(args, data[u], offset[u], kFull, left);
#pragma unroll
      for (int j = 0; j < W; ++j) {
        if (kFull || j < left) acc[j] = Reducer::take(acc[j], Loader::value(args, data[u], j), r);
      }
    }
  }
}

template <class Reducer, class Loader>
__global__ void __launch_bounds__(kBlock)
    reduce_columns(const __grid_constant__ typename Loader::Args args) {
  wait_for_previous();
  using Acc = typename Reducer::Acc;
  constexpr int W = Loader::kWidth;
  unsigned slice = args.tiles.divide(blockIdx.x);  // neighbouring blocks read neighbouring columns
  unsigned tile = blockIdx.x - slice * args.tiles.divisor;
  unsigned outer = args.tiles_x.divide(tile);
  unsigned tile_x = tile - outer * args.tiles_x.divisor;
  std::int64_t offset[2];
  args.kept.offsets(outer, offset);
  int lanes = args.lanes, below = kBlock / lanes;
  std::int64_t first = static_cast<std::int64_t>(tile_x) * lanes * W;  // column of the tile
  std::int64_t column = first + (threadIdx.x & (lanes - 1)) * W;
  std::int64_t left = args.width - column;

  Acc acc[W];
#pragma unroll
  for (int j = 0; j < W; ++j) acc[j] = Reducer::identity();
  if (left > 0) {
    std::int64_t base = offset[1] + column * args.in_stride;
    std::int64_t begin = slice * args.slice_rows + threadIdx.x / lanes;
    std::int64_t end = min((slice + std::int64_t{1}) * args.slice_rows, args.count);
    if (args.vector && left >= W) {
      add_rows<Reducer, Loader, true>(args, base, begin, end, below, W, acc);
    } else {
      add_rows<Reducer, Loader, false>(args, base, begin, end, below, left, acc);
    }
  }
  let_next_come();
  Acc result = join_columns<Reducer, W>(acc, lanes);
  std::int64_t mine = first + threadIdx.x;  // the column this thread answers for
  bool answers = threadIdx.x < lanes * W && mine < args.width;
  if (args.slices > 1) {
    Acc* partials = static_cast<Acc*>(args.partials) + outer * args.width + mine;
    if (answers) partials[slice * args.outputs] = result;
    if (!is_last_block(args.semaphores + tile, static_cast<unsigned>(args.slices))) return;
    if (!answers) return;
    result = partials[0];
    constexpr int kAtOnce = 16;  // loads in flight
    for (std::int64_t s = 1; s < args.slices; s += kAtOnce) {
      Acc part[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (s + i < args.slices) part[i] = partials[(s + i) * args.outputs];
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (s + i < args.slices) result = Reducer::combine(result, part[i]);
      }
    }
  }
  if (answers) {
    Reducer::store(args.out + offset[0] + mine * args.out_stride, args.out_dtype, result,
                   args.count);
  }
}

// --- the table -----------------------------------------------------------------------------------

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

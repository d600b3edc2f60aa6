// How the blocks of a GPU reduce: rows, for outputs whose elements lie together, and columns, for
// outputs that lie together themselves. Templates over R, which says what is reduced: the library's
// kernels are compiled of them by nvcc, those of ReductionKernel and fuse by NVRTC. What is added
// to what follows from the plan (launch_plan.h) alone, so that all of them come to the same bits.
#pragma once

#include "rensa/portable/block.h"
#include "rensa/portable/division.h"

namespace rensa::cuda {

/// How a reduction is spread over blocks (plan_rows and plan_columns in launch_plan.h): the front
/// of the kernel's arguments. Elements move as vectors of R::kWidth.
struct ReduceBlocks {
  long long outputs = 1, count = 0;  // count: elements that one output is reduced from
  long long grid = 1;                // all blocks
  long long slices = 1;              // blocks that share an output, or a tile
  // Rows: `group` threads per output; of long ones each of `slices` blocks takes `slice_vectors`.
  long long vectors = 0, slice_vectors = 0;
  int group = 1;
  // Columns: a block has a tile of `lanes` threads side by side, one per vector of columns, and
  // kBlock / lanes of them below one another; each of `slices` blocks takes `slice_rows`. kBlock
  // lanes are for few rows: one slice, of which each thread takes all rows.
  int lanes = 32;
  FastDiv tiles, tiles_x;  // in all, and of one outer index
  long long width = 1;     // columns of one outer index
  long long slice_rows = 0;
  void* partials = nullptr;  // [output][slice] (rows) or [slice][output] (columns)
  unsigned* semaphores = nullptr;
};

#if defined(__CUDACC__)

// R has
//   Args        derives from ReduceBlocks
//   Index       int or a type of 64 bits, of elements and vectors
//   Acc         an accumulator
//   Data        one vector as it was loaded
//   Place       where an output, or the outer index of a tile, stands
//   Base        where its elements begin, or one vector of them
//   kWidth      elements of a vector
//   kValues     values of a vector: its elements, or one for all
//   kBlockwise  whether several values are taken at once, into one accumulator
//   kRows       rows of columns that a thread loads at once
//   identity(), combine(a, b)
//   place(args, index)         of an output (rows), of an outer index (columns)
//   base(args, place, column)  column: 0 of rows
//   vector(args, base, k)      the k-th vector
//   load<kFull>(args, vector, left)         of which `left` elements are there; kFull: all
//   loads_whole(args)                       whether load<true> may be asked for
//   finish(args, vector, data, full, left)  once for each vector, before its values are taken; of
//                                           columns
//   take(args, acc, data, j, k, i)          acc with value j, which is element k of output i
//   take_all(args, acc, data)               acc with all values of data, an array of vectors (rows)
//   take_rows(args, accs, data)             accs[j] with the values j of data (columns)
//   store(args, place, column, i, acc)

inline constexpr int kReduceUnroll = 4;

template <class R, int A>
__device__ __forceinline__ typename R::Acc join_accumulators(typename R::Acc (&acc)[A]) {
#pragma unroll
  for (int half = A / 2; half > 0; half /= 2) {
#pragma unroll
    for (int j = 0; j < half; ++j) acc[j] = R::combine(acc[j], acc[j + half]);
  }
  return acc[0];
}

// --- outputs whose elements lie together ---

/// Reduces the vectors begin + lane, begin + lane + group, ... before `end` of output `i`.
template <class R>
__device__ __forceinline__ typename R::Acc reduce_slice(const typename R::Args& args,
                                                        const typename R::Base& base,
                                                        typename R::Index begin,
                                                        typename R::Index end, int lane,
                                                        typename R::Index i) {
  using Index = typename R::Index;
  constexpr int W = R::kWidth, N = R::kValues, U = kReduceUnroll;
  constexpr int A = R::kBlockwise ? 1 : N;  // accumulators; a value's is j % A
  int group = args.group;
  Index count = static_cast<Index>(args.count);
  typename R::Acc acc[A];
#pragma unroll
  for (int j = 0; j < A; ++j) acc[j] = R::identity();
  Index k = begin + lane, whole = begin;
  // Aligned vectors that are all there need no checks.
  if (R::loads_whole(args)) whole = end < count / W ? end : count / W;
  for (; k + (U - 1) * group < whole; k += U * group) {
    typename R::Data data[U];
#pragma unroll
    for (int u = 0; u < U; ++u) {
      data[u] = R::template load<true>(args, R::vector(args, base, k + u * group), W);
    }
    if constexpr (R::kBlockwise) {
      acc[0] = R::take_all(args, acc[0], data);
    } else {
#pragma unroll
      for (int u = 0; u < U; ++u) {
#pragma unroll
        for (int j = 0; j < N; ++j) {
          acc[j] = R::take(args, acc[j], data[u], j, (k + u * group) * W + j, i);
        }
      }
    }
  }
  for (; k < end; k += group) {
    Index left = count - k * W;
    auto data = R::template load<false>(args, R::vector(args, base, k), left);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      if (j < left) acc[j % A] = R::take(args, acc[j % A], data, j, k * W + j, i);
    }
  }
  return join_accumulators<R>(acc);
}

/// Stores what the output's threads, of this slice of it, have.
template <class R>
__device__ __forceinline__ void finish_row(const typename R::Args& args,
                                           const typename R::Place& place, typename R::Acc acc,
                                           typename R::Index output, typename R::Index slice,
                                           int lane) {
  using Acc = typename R::Acc;
  acc = join_group<R>(acc, args.group);
  if (args.slices > 1) {
    unsigned slices = static_cast<unsigned>(args.slices);
    Acc* partials = static_cast<Acc*>(args.partials) + static_cast<long long>(output) * slices;
    if (lane == 0) partials[slice] = acc;
    if (!is_last_block(args.semaphores + output, slices)) return;
    acc = R::identity();
    for (unsigned s = lane; s < slices; s += kBlock) acc = R::combine(acc, partials[s]);
    acc = join_group<R>(acc, args.group);
  }
  if (lane == 0 && output < args.outputs) R::store(args, place, 0, output, acc);
}

template <class R> __device__ __forceinline__ void reduce_rows_of(const typename R::Args& args) {
  using Index = typename R::Index;
  wait_for_previous();
  int lane = threadIdx.x & (args.group - 1);
  Index output, slice = 0;
  if (args.slices > 1) {  // then a block is one group
    unsigned slices = static_cast<unsigned>(args.slices);
    output = static_cast<Index>(blockIdx.x / slices);
    slice = static_cast<Index>(blockIdx.x % slices);
  } else {
    output = static_cast<Index>((blockIdx.x * static_cast<long long>(kBlock) + threadIdx.x) /
                                args.group);
  }
  typename R::Acc acc = R::identity();
  typename R::Place place = {};
  if (output < args.outputs) {
    place = R::place(args, output);
    Index begin = slice * static_cast<Index>(args.slice_vectors);
    Index end = begin + static_cast<Index>(args.slice_vectors);
    if (end > args.vectors) end = static_cast<Index>(args.vectors);
    acc = reduce_slice<R>(args, R::base(args, place, 0), begin, end, lane, output);
  }
  finish_row<R>(args, place, acc, output, slice, lane);
}

// --- outputs that lie together ---

/// Joins the columns of all warps; thread x * W + j gets column x * W + j of the tile, for
/// x < lanes. Called by the whole block, with room for W accumulators a thread.
template <class R, int W>
__device__ __forceinline__ typename R::Acc join_columns(typename R::Acc (&acc)[W], int lanes,
                                                        typename R::Acc* shared) {
  using Acc = typename R::Acc;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
  for (int j = 0; j < W; ++j) {
    for (int offset = 16; offset >= lanes; offset /= 2) {
      acc[j] = R::combine(acc[j], shuffle_down(acc[j], offset));
    }
    if (lane < lanes) shared[(warp * 32 + lane) * W + j] = acc[j];
  }
  __syncthreads();
  Acc result = R::identity();
  if (threadIdx.x < lanes * W) {
    result = shared[threadIdx.x];
#pragma unroll
    for (int i = 1; i < kBlock / 32; ++i) {
      result = R::combine(result, shared[i * 32 * W + threadIdx.x]);
    }
  }
  return result;
}

/// Takes every `below`-th row of [begin, end), of the thread's vector of columns, the first of them
/// output i.
template <class R, bool kFull>
__device__ __forceinline__ void add_rows(const typename R::Args& args, const typename R::Base& base,
                                         typename R::Index begin, typename R::Index end, int below,
                                         typename R::Index left, typename R::Index i,
                                         typename R::Acc (&acc)[R::kWidth]) {
  using Index = typename R::Index;
  constexpr int W = R::kWidth, U = kFull ? R::kRows : 1;
  for (Index row = begin; row < end; row += U * below) {
    typename R::Data data[U];
    typename R::Base vector[U];
#pragma unroll
    for (int u = 0; u < U; ++u) {
      Index r = row + u * below;
      vector[u] = R::vector(args, base, r);
      if (r < end) data[u] = R::template load<kFull>(args, vector[u], left);
    }
    if constexpr (R::kBlockwise && kFull) {
      if (row + (U - 1) * below < end) {
        R::take_rows(args, acc, data);
        continue;
      }
    }
#pragma unroll
    for (int u = 0; u < U; ++u) {
      Index r = row + u * below;
      if (r >= end) continue;
      R::finish(args, vector[u], data[u], kFull, left);
#pragma unroll
      for (int j = 0; j < W; ++j) {
        if (kFull || j < left) acc[j] = R::take(args, acc[j], data[u], j, r, i + j);
      }
    }
  }
}

/// What the slices of a tile have, joined by all threads of a block: `columns` partial results
/// lie together, of which `left` are there, from `output` on; thread x gets column x. `shared` has
/// room for one a thread.
template <class R>
__device__ __forceinline__ typename R::Acc join_slices(const typename R::Args& args,
                                                       typename R::Index output,
                                                       typename R::Index left, int columns,
                                                       typename R::Acc* shared) {
  using Acc = typename R::Acc;
  constexpr int kAtOnce = sizeof(Acc) <= 8 ? 16 : 8;  // loads in flight
  int x = static_cast<int>(threadIdx.x) & (columns - 1),
      y = static_cast<int>(threadIdx.x) / columns;
  int below = kBlock / columns;  // a column's threads
  Acc result = R::identity();
  if (x < left) {
    const Acc* next = static_cast<const Acc*>(args.partials) + output + x + y * args.outputs;
    long long step = below * args.outputs;
    int slices = static_cast<int>(args.slices);
    for (int s = y; s < slices; s += kAtOnce * below) {
      Acc part[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k, next += step) {
        if (s + k * below < slices) part[k] = *next;
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        if (s + k * below < slices) result = R::combine(result, part[k]);
      }
    }
  }
  shared[threadIdx.x] = result;
  __syncthreads();
  if (y > 0) return result;
  for (int k = 1; k < below; ++k) result = R::combine(result, shared[k * columns + x]);
  return result;
}

/// Stores a tile of kBlock lanes, whose first column is `first`: neighbouring threads neighbouring
/// columns.
template <class R, int W>
__device__ __forceinline__ void store_columns(const typename R::Args& args,
                                              const typename R::Place& place,
                                              typename R::Index first, typename R::Index output,
                                              typename R::Acc (&acc)[W], typename R::Acc* shared) {
#pragma unroll
  for (int j = 0; j < W; ++j) shared[threadIdx.x * W + j] = acc[j];
  __syncthreads();
#pragma unroll
  for (int j = 0; j < W; ++j) {
    typename R::Index mine = first + j * kBlock + static_cast<int>(threadIdx.x);
    if (mine < args.width) {
      R::store(args, place, mine, output + mine, shared[j * kBlock + threadIdx.x]);
    }
  }
}

template <class R> __device__ __forceinline__ void reduce_columns_of(const typename R::Args& args) {
  using Index = typename R::Index;
  using Acc = typename R::Acc;
  constexpr int W = R::kWidth;
  wait_for_previous();
  unsigned slice = args.tiles.divide(blockIdx.x);  // neighbouring blocks read neighbouring columns
  unsigned tile = blockIdx.x - slice * args.tiles.divisor;
  unsigned outer = args.tiles_x.divide(tile);
  unsigned tile_x = tile - outer * args.tiles_x.divisor;
  typename R::Place place = R::place(args, static_cast<Index>(outer));
  int lanes = args.lanes, below = kBlock / lanes;
  Index first = static_cast<Index>(tile_x) * lanes * W;  // column of the tile
  Index column = first + static_cast<int>(threadIdx.x & (lanes - 1)) * W;
  Index width = static_cast<Index>(args.width), left = width - column;
  Index output = static_cast<Index>(outer) * width;

  Acc acc[W];
#pragma unroll
  for (int j = 0; j < W; ++j) acc[j] = R::identity();
  if (left > 0) {
    typename R::Base base = R::base(args, place, column);
    Index begin =
        static_cast<Index>(slice * args.slice_rows) + static_cast<int>(threadIdx.x) / lanes;
    long long last = (slice + 1ll) * args.slice_rows;
    Index end = static_cast<Index>(last < args.count ? last : args.count);
    if (R::loads_whole(args) && left >= W) {
      add_rows<R, true>(args, base, begin, end, below, W, output + column, acc);
    } else {
      add_rows<R, false>(args, base, begin, end, below, left, output + column, acc);
    }
  }
  __shared__ Acc shared[kBlock * W];
  if (lanes == kBlock) return store_columns<R, W>(args, place, first, output, acc, shared);
  Acc result = join_columns<R, W>(acc, lanes, shared);
  Index mine = first + static_cast<int>(threadIdx.x);  // the column this thread answers for
  bool answers = threadIdx.x < lanes * W && mine < width;
  if (args.slices > 1) {
    Acc* partials = static_cast<Acc*>(args.partials) + output + mine;
    if (answers) partials[slice * args.outputs] = result;
    if (!is_last_block(args.semaphores + tile, static_cast<unsigned>(args.slices))) return;
    result = join_slices<R>(args, output + first, width - first, lanes * W, shared);
  }
  if (answers) R::store(args, place, mine, output + mine, result);
}

#endif  // __CUDACC__

}  // namespace rensa::cuda

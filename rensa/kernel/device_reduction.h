// The reduction kernels that are compiled at run time for a GPU: rows, for outputs whose elements
// lie together, and columns, for outputs that lie together themselves. Templates over a generated
// type R (reduction_source.h). What is added to what follows from the plan alone and is as in
// backend/cuda/reduce.cuh, so that a fused reduction gives the bits of the library's own.
#pragma once

namespace rensa {

/// An extent to divide by. Indices up to 31 bits.
struct divisor32 {
  unsigned divisor, magic, shift, unused;
  __device__ __forceinline__ int divide(int n) const {
    return static_cast<int>((__umulhi(static_cast<unsigned>(n), magic) + n) >> shift);
  }
};
struct divisor64 {
  long long divisor, unused;
  __device__ __forceinline__ long long divide(long long n) const { return n / divisor; }
};

namespace reduction {

constexpr int kBlock = 256, kUnroll = 4;

template <class I, class D, int N>
__device__ __forceinline__ void split(I index, const D (&extents)[N], I (&position)[N]) {
#pragma unroll
  for (int axis = N - 1; axis > 0; --axis) {
    I quotient = extents[axis].divide(index);
    position[axis] = index - quotient * static_cast<I>(extents[axis].divisor);
    index = quotient;
  }
  position[0] = index;
}

/// `value` of the lane `offset` above, for types of any size.
template <class A> __device__ __forceinline__ A shuffle_down(A value, int offset) {
  unsigned words[(sizeof(A) + 3) / 4] = {};
  memcpy(words, &value, sizeof(A));
#pragma unroll
  for (unsigned& word : words) word = __shfl_down_sync(0xffffffffu, word, offset);
  memcpy(&value, words, sizeof(A));
  return value;
}

/// True in all threads of the block that comes last of `blocks`, which then sees what all have
/// written. The semaphore is back at 0 after that.
__device__ __forceinline__ bool is_last_block(unsigned* semaphore, unsigned blocks) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicInc(semaphore, blocks - 1) == blocks - 1;
  __syncthreads();
  __threadfence();
  return last;
}

/// Joins the accumulators of each `group` threads (a power of two); the group's first thread gets
/// the result. Called by the whole block.
template <class R>
__device__ __forceinline__ typename R::acc join_group(typename R::acc acc, int group) {
  for (int offset = (group < 32 ? group : 32) / 2; offset > 0; offset /= 2) {
    acc = R::combine(acc, shuffle_down(acc, offset));
  }
  if (group <= 32) return acc;
  __shared__ typename R::acc warps[kBlock / 32];
  __syncthreads();  // a second call must not overwrite what the first still reads
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps_of_group = group / 32;
  if (lane == 0) warps[warp] = acc;
  __syncthreads();
  if (warp % warps_of_group == 0) {
    acc = lane < warps_of_group ? warps[warp + lane] : R::identity();
    for (int offset = warps_of_group / 2; offset > 0; offset /= 2) {
      acc = R::combine(acc, shuffle_down(acc, offset));
    }
  }
  return acc;
}

/// Reduces the vectors begin + lane, begin + lane + group, ... before `end` of output `i`.
template <class R>
__device__ __forceinline__ typename R::acc reduce_slice(const typename R::arguments& a,
                                                        const long long (&base)[R::kInputs],
                                                        typename R::index begin,
                                                        typename R::index end, int lane,
                                                        typename R::index i) {
  using index = typename R::index;
  constexpr int W = R::kWidth, U = kUnroll;
  int group = static_cast<int>(a.group);
  index count = static_cast<index>(a.count);
  typename R::acc acc[W];
#pragma unroll
  for (int j = 0; j < W; ++j) acc[j] = R::identity();
  index k = begin + lane;
  index whole = end < count / W ? end : count / W;
  for (; k + (U - 1) * group < whole; k += U * group) {
    typename R::elements data[U];
#pragma unroll
    for (int u = 0; u < U; ++u) {
      long long offset[R::kInputs];
      R::reduced_offsets(a, k + u * group, base, offset);
      data[u].template load<true>(a, offset, W);
    }
#pragma unroll
    for (int u = 0; u < U; ++u) {
#pragma unroll
      for (int j = 0; j < W; ++j) {
        acc[j] = R::combine(acc[j], R::map(a, data[u], j, (k + u * group) * W + j, i));
      }
    }
  }
  for (; k < end; k += group) {
    index left = count - k * W;
    long long offset[R::kInputs];
    R::reduced_offsets(a, k, base, offset);
    typename R::elements data;
    data.template load<false>(a, offset, left < W ? static_cast<int>(left) : W);
#pragma unroll
    for (int j = 0; j < W; ++j) {
      if (j < left) acc[j] = R::combine(acc[j], R::map(a, data, j, k * W + j, i));
    }
  }
#pragma unroll
  for (int half = W / 2; half > 0; half /= 2) {
#pragma unroll
    for (int j = 0; j < half; ++j) acc[j] = R::combine(acc[j], acc[j + half]);
  }
  return acc[0];
}

template <class R> __device__ __forceinline__ void rows(const typename R::arguments& a) {
  using index = typename R::index;
  using acc = typename R::acc;
  int group = static_cast<int>(a.group), lane = threadIdx.x & (group - 1);
  unsigned slices = static_cast<unsigned>(a.slices);
  index output, slice = 0, outputs = static_cast<index>(a.outputs);
  if (slices > 1) {  // then a block is one group
    output = static_cast<index>(blockIdx.x / slices);
    slice = static_cast<index>(blockIdx.x % slices);
  } else {
    output = static_cast<index>((blockIdx.x * static_cast<long long>(kBlock) + threadIdx.x) /
                                static_cast<unsigned>(group));
  }
  acc value = R::identity();
  index position[R::kKept] = {};
  if (output < outputs) {
    split(output, a.kept_extents, position);
    long long base[R::kInputs];
    R::kept_offsets(a, position, 0, base);
    index begin = slice * static_cast<index>(a.slice_vectors);
    index end = begin + static_cast<index>(a.slice_vectors);
    if (end > a.vectors) end = static_cast<index>(a.vectors);
    value = reduce_slice<R>(a, base, begin, end, lane, output);
  }
  value = join_group<R>(value, group);
  if (slices > 1) {
    acc* partials = static_cast<acc*>(a.partials) + static_cast<long long>(output) * slices;
    if (lane == 0) partials[slice] = value;
    if (!is_last_block(a.semaphores + output, slices)) return;
    value = R::identity();
    for (unsigned s = lane; s < slices; s += kBlock) value = R::combine(value, partials[s]);
    value = join_group<R>(value, group);
  }
  if (a.count == 0) value = R::identity();  // of nothing, not of many
  if (lane == 0 && output < outputs) R::post(a, position, 0, output, value);
}

/// Takes every `below`-th row of [begin, end); the thread's vector of each starts at `base`.
template <class R, bool kFull>
__device__ __forceinline__ void add_rows(const typename R::arguments& a,
                                         const long long (&base)[R::kInputs],
                                         typename R::index begin, typename R::index end, int below,
                                         int left, typename R::index i,
                                         typename R::acc (&acc)[R::kWidth]) {
  using index = typename R::index;
  constexpr int W = R::kWidth, U = kFull ? kUnroll : 1;
  for (index row = begin; row < end; row += U * below) {
    typename R::elements data[U];
#pragma unroll
    for (int u = 0; u < U; ++u) {
      index r = row + u * below;
      if (r >= end) continue;
      long long offset[R::kInputs];
      R::reduced_offsets(a, r, base, offset);
      data[u].template load<kFull>(a, offset, left);
    }
#pragma unroll
    for (int u = 0; u < U; ++u) {
      index r = row + u * below;
      if (r >= end) continue;
#pragma unroll
      for (int j = 0; j < W; ++j) {
        if (kFull || j < left) acc[j] = R::combine(acc[j], R::map(a, data[u], j, r, i + j));
      }
    }
  }
}

/// Joins the columns of all warps; thread x * W + j gets column x * W + j of the tile, for
/// x < lanes. Called by the whole block.
template <class R>
__device__ __forceinline__ typename R::acc join_columns(typename R::acc (&acc)[R::kWidth],
                                                        int lanes) {
  constexpr int W = R::kWidth;
  __shared__ typename R::acc warps[kBlock / 32][32 * W];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
  for (int j = 0; j < W; ++j) {
    for (int offset = 16; offset >= lanes; offset /= 2) {
      acc[j] = R::combine(acc[j], shuffle_down(acc[j], offset));
    }
    if (lane < lanes) warps[warp][lane * W + j] = acc[j];
  }
  __syncthreads();
  typename R::acc result = R::identity();
  if (threadIdx.x < lanes * W) {
    result = warps[0][threadIdx.x];
#pragma unroll
    for (int w = 1; w < kBlock / 32; ++w) result = R::combine(result, warps[w][threadIdx.x]);
  }
  return result;
}

template <class R> __device__ __forceinline__ void columns(const typename R::arguments& a) {
  using index = typename R::index;
  using acc = typename R::acc;
  constexpr int W = R::kWidth;
  unsigned tiles = static_cast<unsigned>(a.tiles), tiles_x = static_cast<unsigned>(a.tiles_x);
  unsigned slice = blockIdx.x / tiles;  // neighbouring blocks read neighbouring columns
  unsigned tile = blockIdx.x - slice * tiles, outer = tile / tiles_x;
  index position[R::kKept];
  split(static_cast<index>(outer), a.kept_extents, position);
  int lanes = static_cast<int>(a.lanes), below = kBlock / lanes;
  index first = static_cast<index>(tile - outer * tiles_x) * lanes * W;  // column of the tile
  index column = first + static_cast<int>(threadIdx.x & (lanes - 1)) * W;
  index width = static_cast<index>(a.width), left = width - column;
  index output = static_cast<index>(outer) * width;

  acc values[W];
#pragma unroll
  for (int j = 0; j < W; ++j) values[j] = R::identity();
  if (left > 0) {
    long long base[R::kInputs];
    R::kept_offsets(a, position, column, base);
    index begin = static_cast<index>(slice * a.slice_rows) + static_cast<int>(threadIdx.x) / lanes;
    long long last = (slice + 1ll) * a.slice_rows;
    index end = static_cast<index>(last < a.count ? last : a.count);
    if (left >= W) {
      add_rows<R, true>(a, base, begin, end, below, W, output + column, values);
    } else {
      add_rows<R, false>(a, base, begin, end, below, static_cast<int>(left), output + column,
                         values);
    }
  }
  acc result = join_columns<R>(values, lanes);
  index mine = first + static_cast<int>(threadIdx.x);  // the column this thread answers for
  bool answers = threadIdx.x < lanes * W && mine < width;
  if (a.slices > 1) {
    acc* partials = static_cast<acc*>(a.partials) + output + mine;
    if (answers) partials[slice * a.outputs] = result;
    if (!is_last_block(a.semaphores + tile, static_cast<unsigned>(a.slices))) return;
    if (!answers) return;
    result = partials[0];
    constexpr int kAtOnce = 16;  // loads in flight
    for (long long s = 1; s < a.slices; s += kAtOnce) {
      acc part[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        if (s + k < a.slices) part[k] = partials[(s + k) * a.outputs];
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        if (s + k < a.slices) result = R::combine(result, part[k]);
      }
    }
  }
  if (a.count == 0) result = R::identity();
  if (answers) R::post(a, position, mine, output + mine, result);
}

}  // namespace reduction
}  // namespace rensa

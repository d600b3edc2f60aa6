// What the threads of a warp and of a block on a GPU do together: values sent, joined and scanned,
// and who is last. Read by nvcc and NVRTC (the host's compiler sees but kBlock).
#pragma once

#if defined(__CUDACC__)
#include "rensa/core/functors.h"
#endif

namespace rensa::cuda {

constexpr int kBlock = 256;  // threads of a block, unless a kernel says otherwise

#if defined(__CUDACC__)

// --- kernels that follow one another ---

/// Waits until the work before this kernel is done and its memory is to be seen. The next kernel
/// comes when this one is done: for one that waits for another GPU, while what came would hold
/// processors.
__device__ __forceinline__ void wait_for_previous_alone() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Waits until the work before this kernel is done and its memory is to be seen, then lets the next
/// kernel come to the processors once all blocks of this one are there; that one waits here in
/// turn, for all of this one. Every thread of every kernel calls it before it touches memory: also
/// what has nothing to do must not end before the work before.
__device__ __forceinline__ void wait_for_previous() {
  wait_for_previous_alone();
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" :::);
#endif
}

// --- within a warp ---

/// `value` as lanes of a warp send it to each other, word by word: send(word) is one word's way.
template <class A, class Send> __device__ __forceinline__ A shuffle_words(A value, Send&& send) {
  unsigned words[(sizeof(A) + 3) / 4] = {};
  memcpy(words, &value, sizeof(A));
#pragma unroll
  for (unsigned& word : words) word = send(word);
  memcpy(&value, words, sizeof(A));
  return value;
}
/// Of the lane `offset` above, `offset` below, `lane`, and lane ^ mask.
template <class A> __device__ __forceinline__ A shuffle_down(A value, int offset) {
  return shuffle_words(value, [&](unsigned w) { return __shfl_down_sync(0xffffffffu, w, offset); });
}
template <class A> __device__ __forceinline__ A shuffle_up(A value, int offset) {
  return shuffle_words(value, [&](unsigned w) { return __shfl_up_sync(0xffffffffu, w, offset); });
}
template <class A> __device__ __forceinline__ A from_lane(A value, int lane) {
  return shuffle_words(value, [&](unsigned w) { return __shfl_sync(0xffffffffu, w, lane); });
}
template <class A> __device__ __forceinline__ A shuffle_xor(A value, int mask) {
  return shuffle_words(value, [&](unsigned w) { return __shfl_xor_sync(0xffffffffu, w, mask); });
}

// R::combine(a, b) joins two values, R::identity() changes nothing.

template <class V> struct MaxOf {
  static __device__ __forceinline__ V combine(V a, V b) { return m::maximum(a, b); }
};
template <class V> struct SumOf {
  static __device__ __forceinline__ V identity() { return V(0); }
  static __device__ __forceinline__ V combine(V a, V b) { return a + b; }
};

/// Joins the values of each `lanes` neighbours (a power of two); the first of them gets the result.
template <class R, class A> __device__ __forceinline__ A join_lanes(A value, int lanes = 32) {
  for (int offset = lanes / 2; offset > 0; offset /= 2) {
    value = R::combine(value, shuffle_down(value, offset));
  }
  return value;
}

/// The scan over the lanes of a warp; F of scan_functors.h.
template <class F, class V> __device__ __forceinline__ V scan_lanes(V value) {
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    V other = shuffle_up(value, offset);
    if (lane >= offset) value = F()(other, value);
  }
  return value;
}

// --- within a block: called by all of it ---

/// Joins the values of each `group` threads (a power of two, up to kBlock); the group's first
/// thread gets the result.
template <class R, class A> __device__ __forceinline__ A join_group(A value, int group) {
  value = join_lanes<R>(value, group < 32 ? group : 32);
  if (group <= 32) return value;
  __shared__ A warps[kBlock / 32];
  __syncthreads();  // a second call must not overwrite what the first still reads
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps_of_group = group / 32;
  if (lane == 0) warps[warp] = value;
  __syncthreads();
  if (warp % warps_of_group == 0) {
    value = lane < warps_of_group ? warps[warp + lane] : R::identity();
    value = join_lanes<R>(value, warps_of_group);
  }
  return value;
}

/// Joins the values of all threads of a block, which may be any number of warps; thread 0 gets the
/// result.
template <class R, int kMostThreads, class A> __device__ __forceinline__ A join_block(A value) {
  __shared__ A warps[kMostThreads / 32];
  value = join_lanes<R>(value);
  __syncthreads();  // a second call must not overwrite what the first still reads
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x >= 32) return value;
  return join_lanes<R>(threadIdx.x < blockDim.x / 32 ? warps[threadIdx.x] : R::identity());
}

/// Joins the values of each `group` threads, up to a warp, or a block of kBlock threads; all of
/// them get the result.
template <class R, class A> __device__ __forceinline__ A join_all(A value, int group) {
  for (int mask = (group < 32 ? group : 32) / 2; mask > 0; mask /= 2) {
    value = R::combine(value, shuffle_xor(value, mask));
  }
  if (group <= 32) return value;
  __shared__ A warps[kBlock / 32];
  __syncthreads();
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  value = warps[0];
#pragma unroll
  for (int i = 1; i < kBlock / 32; ++i) value = R::combine(value, warps[i]);
  return value;
}

/// Joins `total` and the values of all warps, that of each in its lane `from`; all threads get the
/// result, and in `before` what comes before their warp.
template <class F, int kThreads, class V>
__device__ __forceinline__ V join_warps(V* shared, V value, int from, V total,
                                        V* before = nullptr) {
  int warp = threadIdx.x / 32;
  if (threadIdx.x % 32 == from) shared[warp] = value;
  __syncthreads();
#pragma unroll
  for (int w = 0; w < kThreads / 32; ++w) {
    if (before && w == warp) *before = total;
    total = F()(total, shared[w]);
  }
  return total;
}

// --- among blocks ---

/// Called by every thread of a block after the block has written its part to global memory. True in
/// all threads of the block that comes last of `blocks`, which then sees what all have written. The
/// semaphore is back at 0 after that.
__device__ __forceinline__ bool is_last_block(unsigned* semaphore, unsigned blocks) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicInc(semaphore, blocks - 1) == blocks - 1;
  __syncthreads();
  __threadfence();
  return last;
}

#endif  // __CUDACC__

}  // namespace rensa::cuda

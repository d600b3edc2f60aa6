// What the threads that share a row tell each other: joins whose result all of them get.
#pragma once

#include "rensa/backend/cuda/kernel.cuh"

namespace rensa::cuda {

struct Greater {
  template <class V> static __device__ __forceinline__ V join(V a, V b) { return m::maximum(a, b); }
};
struct Plus {
  template <class V> static __device__ __forceinline__ V join(V a, V b) { return a + b; }
};

// All threads of a group get the same result; a group is up to a warp, or a block of kBlock
// threads.
template <class Op, class V> __device__ __forceinline__ V join_all(V value, int group) {
  for (int mask = min(group, 32) / 2; mask > 0; mask /= 2) {
    value = Op::join(value, shuffle_xor(value, mask));
  }
  if (group <= 32) return value;
  __shared__ V warps[kBlock / 32];
  __syncthreads();
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  value = warps[0];
#pragma unroll
  for (int i = 1; i < kBlock / 32; ++i) value = Op::join(value, warps[i]);
  return value;
}

}  // namespace rensa::cuda

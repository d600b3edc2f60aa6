// What the scan kernels share: what they do to two values, and the scan over a warp's lanes.
#pragma once

#include <cstring>

#include "rensa/backend/cuda/kernel.cuh"

namespace rensa::cuda {

struct Sum {
  template <class V> static RENSA_FN V identity() { return V(0); }
  template <class V> RENSA_FN V operator()(V a, V b) const { return a + b; }
};
struct Product {
  template <class V> static RENSA_FN V identity() { return V(1); }
  template <class V> RENSA_FN V operator()(V a, V b) const { return a * b; }
};

template <class A> __device__ __forceinline__ A shuffle_up(A value, int offset) {
  static_assert(sizeof(A) % 4 == 0);
  unsigned words[sizeof(A) / 4];
  memcpy(words, &value, sizeof(A));
#pragma unroll
  for (unsigned& word : words) word = __shfl_up_sync(0xffffffffu, word, offset);
  memcpy(&value, words, sizeof(A));
  return value;
}

/// The scan over the lanes of a warp.
template <class F, class V> __device__ __forceinline__ V scan_lanes(V value) {
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    V other = shuffle_up(value, offset);
    if (lane >= offset) value = F()(other, value);
  }
  return value;
}

}  // namespace rensa::cuda

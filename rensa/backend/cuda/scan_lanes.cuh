// What the scan kernels share: what they do to two values, and the scan over a warp's lanes.
#pragma once

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

// The scan over a warp's lanes, which the scan kernels share.
#pragma once

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/core/scan_functors.h"

namespace rensa::cuda {

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

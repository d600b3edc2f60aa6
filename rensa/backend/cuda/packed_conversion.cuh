// Vectors of elements to values and back, two elements at once where the GPU can.
#pragma once

#include "rensa/backend/cuda/kernel.cuh"

namespace rensa::cuda {

#if defined(__CUDACC__)

/// Two values as bfloat16, `low` in the lower half, by the bits of bfloat16_t(float).
#if __CUDA_ARCH__ >= 900
__device__ __forceinline__ unsigned bfloat16_pair(float low, float high) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
#else
__device__ __forceinline__ unsigned bfloat16_pair(float low, float high) {
  return bfloat16_t(low).bits | static_cast<unsigned>(bfloat16_t(high).bits) << 16;
}
#endif

/// Each element as convert<V> gives it.
template <class V, class T, int W>
__device__ __forceinline__ void unpack(const Pack<T, W>& pack, V (&value)[W]) {
  if constexpr (std::is_same_v<T, bfloat16_t> && std::is_same_v<V, float> && W % 2 == 0) {
    Pack<unsigned, W / 2> pairs;
    memcpy(&pairs, &pack, sizeof(pack));
#pragma unroll
    for (int j = 0; j < W / 2; ++j) {
      value[2 * j] = __uint_as_float(pairs.value[j] << 16);
      value[2 * j + 1] = __uint_as_float(pairs.value[j] & 0xffff0000u);
    }
  } else {
#pragma unroll
    for (int j = 0; j < W; ++j) value[j] = convert<V>(pack.value[j]);
  }
}

/// Two values as float16, `low` in the lower half, by the bits of half_t(float).
__device__ __forceinline__ unsigned half_pair(float low, float high) {
  unsigned pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

/// Each value as convert<T> gives it.
template <class T, class V, int W>
__device__ __forceinline__ Pack<T, W> pack_of(const V (&value)[W]) {
  Pack<T, W> pack;
  if constexpr (is_16bit_float<T> && std::is_same_v<V, float> && W % 2 == 0) {
    Pack<unsigned, W / 2> pairs;
#pragma unroll
    for (int j = 0; j < W / 2; ++j) {
      if constexpr (std::is_same_v<T, bfloat16_t>) {
        pairs.value[j] = bfloat16_pair(value[2 * j], value[2 * j + 1]);
      } else {
        pairs.value[j] = half_pair(value[2 * j], value[2 * j + 1]);
      }
    }
    memcpy(&pack, &pairs, sizeof(pack));
  } else {
#pragma unroll
    for (int j = 0; j < W; ++j) pack.value[j] = convert<T>(value[j]);
  }
  return pack;
}

#endif  // __CUDACC__

}  // namespace rensa::cuda

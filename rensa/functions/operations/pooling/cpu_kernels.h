// The innermost loops of pooling on the CPU.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rensa/backend/cpu/instruction_sets.h"
#include "rensa/portable/element_types.h"

namespace rensa::host {

/// The elements that neighbouring results have at one position of their windows.
template <class T> struct PoolingRun {
  const T* from;
  int position;
};

/// Of n neighbours whose elements lie one after the other.
template <class T> struct PoolingKernels {
  using V = ComputeOf<T>;
  /// Takes the elements of `count` runs into the greatest so far, and their positions.
  void (*take_greatest)(const PoolingRun<T>* runs, int count, int n, V* greatest, int* positions);
  /// to = values
  void (*store)(const V* values, int n, T* to);
  void (*store_bytes)(const int* values, int n, std::uint8_t* to);
};

struct AllPoolingKernels {
  PoolingKernels<half_t> f16;
  PoolingKernels<bfloat16_t> bf16;
  PoolingKernels<float> f32;
  PoolingKernels<double> f64;

  template <class T> const PoolingKernels<T>& of() const {
    if constexpr (std::is_same_v<T, half_t>) return f16;
    else if constexpr (std::is_same_v<T, bfloat16_t>) return bf16;
    else if constexpr (std::is_same_v<T, float>) return f32;
    else return f64;
  }
};

RENSA_EACH_SET(AllPoolingKernels get_pooling_kernels();)

}  // namespace rensa::host

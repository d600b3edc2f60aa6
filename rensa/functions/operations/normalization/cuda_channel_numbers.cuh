// gamma and beta as the kernels of normalizations read them: one of each channel, of any floating
// dtype.
#pragma once

#include "rensa/backend/cuda/kernel.cuh"

namespace rensa::cuda {

struct ChannelNumbers {
  const char* data;  // null: all are a number
  ElementType type;
};

inline ChannelNumbers numbers_of(const Operand& operand, Dtype compute) {
  if (!operand.present()) return {nullptr, ElementType()};
  return {operand.view.data, ElementType(operand.view.dtype, compute_type(compute), false)};
}

/// That of channel c, or `absent`.
template <class V>
__device__ __forceinline__ V number_of(const ChannelNumbers& numbers, std::int64_t c, V absent) {
  if (!numbers.data) return absent;
  return load_any<V>(numbers.data + (c << numbers.type.log2_size), numbers.type);
}

}  // namespace rensa::cuda

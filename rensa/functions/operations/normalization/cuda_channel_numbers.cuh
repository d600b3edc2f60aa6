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

/// That of channel c as it is stored, so that other loads follow before it is waited for.
template <class V>
__device__ __forceinline__ Raw<V> load_number(const ChannelNumbers& numbers, std::int64_t c) {
  if (!numbers.data) return {};
  return load_raw<V>(numbers.data + (c << numbers.type.log2_size), numbers.type.log2_size);
}

/// What load_number has loaded, or `absent`. No function is called: loads in flight would be waited
/// for.
template <class V>
__device__ __forceinline__ V number_from(const ChannelNumbers& numbers, const Raw<V>& raw,
                                         V absent) {
  if (!numbers.data) return absent;
  switch (numbers.type.dtype) {
    case Dtype::float16: return convert<V>(raw_as<half_t>(raw));
    case Dtype::bfloat16: return convert<V>(raw_as<bfloat16_t>(raw));
    case Dtype::float64: return convert<V>(raw_as<double>(raw));
    default: return convert<V>(raw_as<float>(raw));
  }
}

/// That of channel c, or `absent`.
template <class V>
__device__ __forceinline__ V number_of(const ChannelNumbers& numbers, std::int64_t c, V absent) {
  return number_from(numbers, load_number<V>(numbers, c), absent);
}

}  // namespace rensa::cuda

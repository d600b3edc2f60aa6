// Conversions between the storage types of arrays and the value types of kernels, with NumPy's
// meaning: truth for bool, truncation and wrap-around for integers, the real part for real types.
// Everything here is inlined by force, so that each instruction set gets code of its own.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rensa/core/dtype.h"
#include "rensa/core/functors.h"
#include "rensa/core/ufunc.h"

namespace rensa::host {

// Every dtype with the C++ type that kernels read and write it as.
// clang-format off
#define RENSA_STORAGE_TYPES(X)                                                              \
  X(bool_, bool) X(int8, std::int8_t) X(int16, std::int16_t) X(int32, std::int32_t)         \
  X(int64, std::int64_t) X(uint8, std::uint8_t) X(uint16, std::uint16_t)                    \
  X(uint32, std::uint32_t) X(uint64, std::uint64_t) X(float16, half_t)                      \
  X(bfloat16, bfloat16_t) X(float32, float) X(float64, double)                              \
  X(complex64, complex_t<float>) X(complex128, complex_t<double>)
// clang-format on

template <class T>
inline constexpr bool is_16bit_float = std::is_same_v<T, half_t> || std::is_same_v<T, bfloat16_t>;

template <class To, class From> RENSA_FN To convert(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (is_16bit_float<From>) {
    return convert<To>(static_cast<float>(x));
  } else if constexpr (m::is_complex<From>::value) {
    if constexpr (std::is_same_v<To, bool>) {
      return (x.re != 0) | (x.im != 0);
    } else if constexpr (m::is_complex<To>::value) {
      return {static_cast<decltype(To::re)>(x.re), static_cast<decltype(To::im)>(x.im)};
    } else {
      return convert<To>(x.re);
    }
  } else if constexpr (m::is_complex<To>::value) {
    return To(static_cast<decltype(To::re)>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (is_16bit_float<To>) {
    return To(static_cast<float>(x));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // Through the signed type, so that negative numbers wrap around in unsigned ones; numbers
    // beyond it can only be meant unsigned.
    if constexpr (sizeof(To) == 8 && std::is_unsigned_v<To>) {
      constexpr From kTwo63 = From(9223372036854775808.0);
      return x < kTwo63 ? static_cast<To>(static_cast<long long>(x))
                        : static_cast<To>(static_cast<long long>(x - kTwo63)) + (To(1) << 63);
    } else {
      return static_cast<To>(static_cast<long long>(x));
    }
  } else {
    return static_cast<To>(x);
  }
}

/// Reads a stored element; a bool may be any byte.
template <class T> RENSA_FN T load_element(const char* p) {
  if constexpr (std::is_same_v<T, bool>) {
    return *reinterpret_cast<const unsigned char*>(p) != 0;
  } else {
    return *reinterpret_cast<const T*>(p);
  }
}

/// Calls f(V{}) with the value type of `type`.
template <class F> decltype(auto) visit_compute_type(ComputeType type, F&& f) {
  switch (type) {
    case ComputeType::i64: return f(0ll);
    case ComputeType::u64: return f(0ull);
    case ComputeType::f32: return f(0.0f);
    case ComputeType::f64: return f(0.0);
    case ComputeType::c64: return f(complex_t<float>(0));
    default: return f(complex_t<double>(0));
  }
}

template <class V>
inline constexpr ComputeType compute_type_of =
    std::is_same_v<V, long long>            ? ComputeType::i64
    : std::is_same_v<V, unsigned long long> ? ComputeType::u64
    : std::is_same_v<V, float>              ? ComputeType::f32
    : std::is_same_v<V, double>             ? ComputeType::f64
    : std::is_same_v<V, complex_t<float>>   ? ComputeType::c64
                                            : ComputeType::c128;

}  // namespace rensa::host

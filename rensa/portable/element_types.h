// The types that elements of each dtype are stored and computed in, for kernels of the library on
// every device. (Kernels that are made at run time have them spelled out.)
#pragma once

#include <cstdint>
#include <type_traits>

#include "rensa/portable/compute_types.h"
#include "rensa/portable/conversion.h"

namespace rensa {

/// X(dtype, the C++ type that kernels read and write it as) for every dtype.
// clang-format off
#define RENSA_NUMBER_TYPES(X) /* the real ones but bool */                                  \
  X(int8, std::int8_t) X(int16, std::int16_t) X(int32, std::int32_t) X(int64, std::int64_t) \
  X(uint8, std::uint8_t) X(uint16, std::uint16_t) X(uint32, std::uint32_t)                  \
  X(uint64, std::uint64_t) X(float16, half_t) X(bfloat16, bfloat16_t) X(float32, float)     \
  X(float64, double)
#define RENSA_STORAGE_TYPES(X)           \
  X(bool_, bool) RENSA_NUMBER_TYPES(X)   \
  X(complex64, complex_t<float>) X(complex128, complex_t<double>)
// clang-format on

/// The value type of a compute type.
template <ComputeType C> struct ValueOf;
template <> struct ValueOf<ComputeType::i64> { using type = long long; };
template <> struct ValueOf<ComputeType::u64> { using type = unsigned long long; };
template <> struct ValueOf<ComputeType::f32> { using type = float; };
template <> struct ValueOf<ComputeType::f64> { using type = double; };
template <> struct ValueOf<ComputeType::c64> { using type = complex_t<float>; };
template <> struct ValueOf<ComputeType::c128> { using type = complex_t<double>; };

/// The value type that stored elements of T are computed in.
template <class T>
using ComputeOf =
    std::conditional_t<std::is_integral_v<T>,
                       std::conditional_t<std::is_unsigned_v<T> && !std::is_same_v<T, bool>,
                                          unsigned long long, long long>,
                       std::conditional_t<is_16bit_float<T>, float, T>>;

template <class V>
inline constexpr ComputeType compute_type_of =
    std::is_same_v<V, long long>            ? ComputeType::i64
    : std::is_same_v<V, unsigned long long> ? ComputeType::u64
    : std::is_same_v<V, float>              ? ComputeType::f32
    : std::is_same_v<V, double>             ? ComputeType::f64
    : std::is_same_v<V, complex_t<float>>   ? ComputeType::c64
                                            : ComputeType::c128;

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

/// Calls f(T{}) with the type that elements of a floating dtype are stored in.
template <class F> decltype(auto) visit_floating(Dtype floating, F&& f) {
  switch (floating) {
    case Dtype::float16: return f(half_t{});
    case Dtype::bfloat16: return f(bfloat16_t{});
    case Dtype::float32: return f(0.0f);
    default: return f(0.0);
  }
}

}  // namespace rensa

// Conversions between the storage types of arrays and the value types of functors.h, with NumPy's
// meaning. Read by the host compiler, nvcc and NVRTC: it includes only headers like itself.
#pragma once

#include "rensa/core/functors.h"

namespace rensa {

namespace detail {
template <class A, class B> struct same { static constexpr bool value = false; };
template <class A> struct same<A, A> { static constexpr bool value = true; };
template <class T> constexpr bool is_bool = same<T, bool>::value;
template <class T> constexpr bool is_real = same<T, float>::value || same<T, double>::value;
}  // namespace detail

/// half_t, bfloat16_t, and what derives from them.
template <class T>
constexpr bool is_16bit_float = __is_base_of(half_t, T) || __is_base_of(bfloat16_t, T);

/// Truth for bool, truncation and wrap-around for integers, the real part for real types. Inlined
/// by force, so that each instruction set gets code of its own.
template <class To, class From> RENSA_FN To convert(From x) {
  using detail::is_bool, detail::is_real;
  if constexpr (detail::same<To, From>::value) {
    return x;
  } else if constexpr (is_16bit_float<From>) {
    return convert<To>(static_cast<float>(x));
  } else if constexpr (m::is_complex<From>::value) {
    if constexpr (is_bool<To>) {
      return (x.re != 0) | (x.im != 0);
    } else if constexpr (m::is_complex<To>::value) {
      return {static_cast<decltype(To::re)>(x.re), static_cast<decltype(To::im)>(x.im)};
    } else {
      return convert<To>(x.re);
    }
  } else if constexpr (m::is_complex<To>::value) {
    return To(static_cast<decltype(To::re)>(x));
  } else if constexpr (is_bool<To>) {
    return x != From(0);
  } else if constexpr (is_16bit_float<To>) {
    return To(static_cast<float>(x));
  } else if constexpr (is_real<From> && !is_real<To>) {
    // Through the signed type, so that negative numbers wrap around in unsigned ones; numbers
    // beyond it can only be meant unsigned.
    if constexpr (sizeof(To) == 8 && To(-1) > To(0)) {
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
      return x < From(0) ? static_cast<To>(static_cast<long long>(x)) : static_cast<To>(x);
#else
      constexpr From kTwo63 = From(9223372036854775808.0);
      return x < kTwo63 ? static_cast<To>(static_cast<long long>(x))
                        : static_cast<To>(static_cast<long long>(x - kTwo63)) + (To(1) << 63);
#endif
    } else {
      return static_cast<To>(static_cast<long long>(x));
    }
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace rensa

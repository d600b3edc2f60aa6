// How fused kernels move values between the storage types of arrays and the value types of
// functors.h: as the library's own kernels do. Read by NVRTC and the machine's compiler.
#pragma once

#include "rensa/core/functors.h"

namespace rensa {
namespace fused {

template <class A, class B> struct same { static constexpr bool value = false; };
template <class A> struct same<A, A> { static constexpr bool value = true; };
template <class T> constexpr bool is_bool = same<T, bool>::value;
template <class T> constexpr bool is_real = same<T, float>::value || same<T, double>::value;
template <class T> constexpr bool is_complex = m::is_complex<T>::value;
template <class T> constexpr bool is_half = __is_base_of(half_t, T) || __is_base_of(bfloat16_t, T);

/// NumPy's conversion: truth for bool, truncation and wrap-around for integers, the real part for
/// real types.
template <class To, class From> RENSA_FN To convert(From x) {
  if constexpr (same<To, From>::value) {
    return x;
  } else if constexpr (is_half<From>) {
    return convert<To>(static_cast<float>(x));
  } else if constexpr (is_complex<From>) {
    if constexpr (is_bool<To>) {
      return (x.re != 0) | (x.im != 0);
    } else if constexpr (is_complex<To>) {
      return {static_cast<decltype(To::re)>(x.re), static_cast<decltype(To::im)>(x.im)};
    } else {
      return convert<To>(x.re);
    }
  } else if constexpr (is_complex<To>) {
    return To(static_cast<decltype(To::re)>(x));
  } else if constexpr (is_bool<To>) {
    return x != From(0);
  } else if constexpr (is_half<To>) {
    return To(static_cast<float>(x));
  } else if constexpr (is_real<From> && !is_real<To>) {
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

/// A stored element as 0 or 1.
template <class V, class T> RENSA_FN V truth(T x) { return convert<V>(convert<bool>(x)); }

// The same as objects.
template <class To> struct to {
  template <class From> RENSA_FN To operator()(From x) const { return convert<To>(x); }
};
template <class V> struct truth_as {
  template <class T> RENSA_FN V operator()(T x) const { return truth<V>(x); }
};
struct is_set {
  RENSA_FN bool operator()(unsigned char x) const { return x != 0; }
};

#if !defined(__CUDACC__) && !defined(__CUDACC_RTC__)
template <class T> inline T element(T number, int) { return number; }
template <class T, int N> inline T element(const T (&block)[N], int e) { return block[e]; }

// Compilers take far longer for one function of many loops than for many functions: in a long
// kernel the statements of a kind call one. That costs cheap operations a third of their speed.
#ifdef RENSA_LONG_KERNEL
#define RENSA_EACH __attribute__((noinline))
#else
#define RENSA_EACH __attribute__((always_inline)) inline
#endif
/// out[e] = f(a[e]...) for a whole block.
template <class F, class R, int N, class... A>
RENSA_EACH void each(F f, R (&__restrict out)[N], const A&... a) {
#pragma GCC unroll 1
  for (int e = 0; e < N; ++e) out[e] = f(element(a, e)...);
}
#undef RENSA_EACH
#endif

}  // namespace fused
}  // namespace rensa

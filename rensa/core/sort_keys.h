// The order of sorted arrays as unsigned integers, for radix sorts on every device: a < b in
// NumPy's order (NaN last) where sort_key(a) < sort_key(b). Read by the host compiler and by nvcc.
#pragma once

#include <cmath>

#include "rensa/core/functors.h"

namespace rensa {

namespace detail {
template <int kBytes> struct UnsignedOfSize;
template <> struct UnsignedOfSize<1> { using type = unsigned char; };
template <> struct UnsignedOfSize<2> { using type = unsigned short; };
template <> struct UnsignedOfSize<4> { using type = unsigned int; };
template <> struct UnsignedOfSize<8> { using type = unsigned long long; };

/// The bits of infinity and of the NaN that stands for all NaNs; 0 for types without them.
template <class T> struct FloatBits { static constexpr unsigned long long infinity = 0, nan = 0; };
template <> struct FloatBits<half_t> {
  static constexpr unsigned long long infinity = 0x7c00, nan = 0x7e00;
};
template <> struct FloatBits<bfloat16_t> {
  static constexpr unsigned long long infinity = 0x7f80, nan = 0x7fc0;
};
template <> struct FloatBits<float> {
  static constexpr unsigned long long infinity = 0x7f800000, nan = 0x7fc00000;
};
template <> struct FloatBits<double> {
  static constexpr unsigned long long infinity = 0x7ff0000000000000, nan = 0x7ff8000000000000;
};
}  // namespace detail

/// The unsigned type as wide as T.
template <class T> using KeyOf = typename detail::UnsignedOfSize<sizeof(T)>::type;

/// The key of a bool, an integer or a real number. With `merge_zeros` -0 has the key of 0 (what an
/// argsort needs); without, it stands right before 0, so that the number comes back from its key.
template <class T> RENSA_FN KeyOf<T> sort_key(T x, bool merge_zeros) {
  using U = KeyOf<T>;
  constexpr U top = U(U(1) << (8 * sizeof(T) - 1));
  if constexpr (detail::FloatBits<T>::infinity != 0) {
    constexpr U infinity = U(detail::FloatBits<T>::infinity), nan = U(detail::FloatBits<T>::nan);
    U bits = detail::bit_cast<U>(x);
    if (U(bits & U(~top)) > infinity) bits = nan;
    if (merge_zeros && bits == top) bits = 0;
    return bits & top ? U(~bits) : U(bits | top);
  } else if constexpr (T(-1) < T(0)) {
    return U(U(x) ^ top);
  } else {
    return U(x);
  }
}

/// The number that `sort_key(x, false)` came from.
template <class T> RENSA_FN T key_value(KeyOf<T> key) {
  using U = KeyOf<T>;
  constexpr U top = U(U(1) << (8 * sizeof(T) - 1));
  if constexpr (detail::FloatBits<T>::infinity != 0) {
    return detail::bit_cast<T>(key & top ? U(key ^ top) : U(~key));
  } else if constexpr (T(-1) < T(0)) {
    return T(U(key ^ top));
  } else {
    return T(key);
  }
}

/// The key of a complex number is that of two words, `high` first: numbers by real and imaginary
/// part, then those with a NaN as imaginary part (by the real one), as real part, as both.
template <class T> struct ComplexKey { KeyOf<T> high, low; };
template <class T> RENSA_FN ComplexKey<T> sort_key(complex_t<T> x) {
  using U = KeyOf<T>;
  constexpr U most = U(~U(0));  // keys of numbers, and of NaN, are far below
  U re = sort_key(x.re, true), im = sort_key(x.im, true);
  bool nan_re = !(x.re == x.re), nan_im = !(x.im == x.im);
  if (nan_re) return nan_im ? ComplexKey<T>{most, most} : ComplexKey<T>{U(most - 1), im};
  return nan_im ? ComplexKey<T>{U(most - 2), re} : ComplexKey<T>{re, im};
}

/// NumPy's order of values, NaN last, for searches.
template <class V> RENSA_FN bool sorts_before(V a, V b) {
  if constexpr (m::is_integer<V>::value) return a < b;
  else return a < b || (!(b == b) && a == a);
}
template <class T> RENSA_FN bool sorts_before(complex_t<T> a, complex_t<T> b) {
  ComplexKey<T> x = sort_key(a), y = sort_key(b);
  return x.high != y.high ? x.high < y.high : x.low < y.low;
}

}  // namespace rensa

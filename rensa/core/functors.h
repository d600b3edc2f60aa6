// What expressions of the tables call (m::), over one value type V. Read by the host compiler
// (after <cmath>), by nvcc and by NVRTC; it includes only headers like itself.
//
// V is one of: long long (bool and signed integers), unsigned long long, float (float16, bfloat16
// and float32), double, complex_t<float>, complex_t<double>. Results are narrowed to the output's
// dtype on the store, which for integers gives NumPy's wrap-around.
#pragma once

#include "rensa/core/bessel.h"
#include "rensa/core/complex_functors.h"
#include "rensa/core/power.h"

namespace rensa {

namespace m {

// Integer division by zero gives 0, as NumPy's does (it also warns).
RENSA_FN long long floor_divide(long long a, long long b) {
  if (b == 0) return 0;
  if (b == -1) return (long long)(0ull - (unsigned long long)a);
  long long q = a / b;
  return q - ((a % b != 0) & ((a < 0) != (b < 0)));
}
RENSA_FN unsigned long long floor_divide(unsigned long long a, unsigned long long b) {
  return b == 0 ? 0 : a / b;
}
RENSA_FN long long remainder(long long a, long long b) {
  if (b == 0 || b == -1) return 0;
  long long r = a % b;
  return r + (r != 0 && (r < 0) != (b < 0) ? b : 0);
}
RENSA_FN unsigned long long remainder(unsigned long long a, unsigned long long b) {
  return b == 0 ? 0 : a % b;
}
// Both from what fmod(a, b) leaves: the CPU's kernels have a faster one over float.
template <class V> RENSA_FN V remainder_of(V mod, V b) {  // Python's: the sign of b
  V wrapped = (mod < V(0)) != (b < V(0)) ? mod + b : mod;
  return mod == V(0) ? copysign(V(0), b) : wrapped;
}
template <class V> RENSA_FN V floor_divide_of(V mod, V a, V b) {  // numpy's npy_floor_divide
  V div = (a - mod) / b;
  div = mod != V(0) && (b < V(0)) != (mod < V(0)) ? div - V(1) : div;
  V floored = floor(div);
  floored = V(0.5) < div - floored ? floored + V(1) : floored;
  // a / b where b is 0, and the sign of a / b where that rounds to 0, without two more divisions.
  V zero = signbit(a) != signbit(b) ? -V(0) : V(0);
  V result = div == V(0) ? zero : floored;
  return b == V(0) ? a * copysign(infinity<V>(), b) : result;
}
template <class V> RENSA_FN V remainder(V a, V b) { return remainder_of(fmod(a, b), b); }
template <class V> RENSA_FN V floor_divide(V a, V b) { return floor_divide_of(fmod(a, b), a, b); }

RENSA_FN long long fmod(long long a, long long b) {  // C's: the sign of a
  return b == 0 || b == -1 ? 0 : a % b;
}
RENSA_FN unsigned long long fmod(unsigned long long a, unsigned long long b) {
  return b == 0 ? 0 : a % b;
}

template <class V> RENSA_FN V rsqrt(V a) { return V(1) / sqrt(a); }

RENSA_FN unsigned long long gcd(unsigned long long a, unsigned long long b) {
  while (b != 0) {
    unsigned long long rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}
RENSA_FN long long gcd(long long a, long long b) {
  return (long long)gcd((unsigned long long)abs(a), (unsigned long long)abs(b));
}
RENSA_FN unsigned long long lcm(unsigned long long a, unsigned long long b) {
  unsigned long long divisor = gcd(a, b);
  return divisor == 0 ? 0 : a / divisor * b;
}
RENSA_FN long long lcm(long long a, long long b) {
  return (long long)lcm((unsigned long long)abs(a), (unsigned long long)abs(b));
}

/// Bits that are set in the magnitude.
template <class V> RENSA_FN V bit_count(V a) {
  unsigned long long x = (unsigned long long)abs(a);
  x -= x >> 1 & 0x5555555555555555ull;
  x = (x & 0x3333333333333333ull) + (x >> 2 & 0x3333333333333333ull);
  x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0full;
  return V(x * 0x0101010101010101ull >> 56);
}

RENSA_FN float pow(float a, float b) {
#if RENSA_HAS_FMA
  return power::pow(a, b);
#else
  return ::powf(a, b);
#endif
}
RENSA_FN double pow(double a, double b) { return ::pow(a, b); }
RENSA_FN unsigned long long pow(unsigned long long base, unsigned long long exponent) {
  unsigned long long result = 1;
  for (; exponent != 0; exponent >>= 1, base *= base) result *= (exponent & 1) ? base : 1;
  return result;
}
RENSA_FN long long pow(long long base, long long exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? ((exponent & 1) ? -1 : 1) : 0;
  return (long long)pow((unsigned long long)base, (unsigned long long)exponent);
}
template <class V> RENSA_FN V reciprocal(V a) {
  if constexpr (is_complex<V>::value) return complex_reciprocal(a);
  else return is_integer<V>::value && a == V(0) ? V(0) : V(1) / a;
}

RENSA_FN float logaddexp(float a, float b) {
  return a == b ? a + 0.693147180559945309417f : maximum(a, b) + log1p(exp(-abs(a - b)));
}
RENSA_FN double logaddexp(double a, double b) {
  return a == b ? a + 0.693147180559945309417 : maximum(a, b) + log1p(exp(-abs(a - b)));
}

template <class V> RENSA_FN V logaddexp2(V a, V b) {
  constexpr V kLog2E = V(1.44269504088896340736);
  return a == b ? a + V(1) : maximum(a, b) + log1p(exp2(-abs(a - b))) * kLog2E;
}

/// What is left of `a` behind the point, with its sign.
template <class V> RENSA_FN V fraction(V a) { return copysign(isinf(a) ? V(0) : a - trunc(a), a); }
/// `a` rounded to a multiple of 1 / scale, or of -scale where that is negative.
template <class V> RENSA_FN V round_scaled(V a, V scale) {
  return scale < V(0) ? rint(a / -scale) * -scale : rint(a * scale) / scale;
}
template <class V> RENSA_FN V heaviside(V a, V at_zero) {
  V step = a == V(0) ? at_zero : V(V(0) < a);
  return a == a ? step : a;
}
/// NaN gives b, the infinities c and -c.
template <class V> RENSA_FN V finite_or(V a, V b, V c) {
  V end = a < V(0) ? -c : c;
  V number = abs(a) == infinity<V>() ? end : a;
  return a == a ? number : b;
}

RENSA_FN int exponent_of(double b) { return 10000 < b ? 10000 : -10000 < b ? (int)b : -10000; }
RENSA_FN float ldexp(float a, float b) { return ::ldexpf(a, exponent_of(b)); }
RENSA_FN double ldexp(double a, double b) { return ::ldexp(a, exponent_of(b)); }

/// What frexp takes `a` apart into: a = mantissa * 2^exponent, 0.5 <= |mantissa| < 1; of 0, the
/// infinities and NaN the exponent is 0.
RENSA_FN float mantissa(float a) {
  int power;
  return ::frexpf(a, &power);
}
RENSA_FN double mantissa(double a) {
  int power;
  return ::frexp(a, &power);
}
RENSA_FN float exponent(float a) {
  int power = 0;
  ::frexpf(isfinite(a) ? a : 0.0f, &power);
  return float(power);
}
RENSA_FN double exponent(double a) {
  int power = 0;
  ::frexp(isfinite(a) ? a : 0.0, &power);
  return power;
}

// The next number after `a` towards `b`, whose bits are `bits` in T: one up or down in them.
template <class T, class Bits, class V> RENSA_FN V next_of(V a, V b, Bits bits) {
  constexpr Bits kSign = Bits(Bits(1) << (8 * sizeof(Bits) - 1));
  Bits smallest = Bits(signbit(b) ? kSign | 1 : 1);
  Bits next = Bits((a < b) == (V(0) < a) ? bits + 1 : bits - 1);
  V moved = V(detail::bit_cast<T>(a == V(0) ? smallest : next));
  return !(a == a) ? a : !(b == b) ? b : a == b ? b : moved;
}
RENSA_FN float nextafter(float a, float b) {
  return next_of<float>(a, b, detail::bit_cast<unsigned int>(a));
}
RENSA_FN double nextafter(double a, double b) {
  return next_of<double>(a, b, detail::bit_cast<unsigned long long>(a));
}
/// The same in a 16-bit type.
template <class Half> RENSA_FN float next_half(float a, float b) {
  return next_of<Half>(a, b, detail::bit_cast<unsigned short>(Half(a)));
}

template <class V> struct unsigned_of { using type = unsigned long long; };
template <> struct unsigned_of<int> { using type = unsigned int; };
template <class V> RENSA_FN V left_shift(V a, V b) {
  using U = typename unsigned_of<V>::type;
  return U(b) < 8 * sizeof(V) ? V(U(a) << U(b)) : V(0);
}
template <class V> RENSA_FN V right_shift(V a, V b) {
  using U = typename unsigned_of<V>::type;
  return U(b) < 8 * sizeof(V) ? V(a >> U(b)) : (a < V(0) ? ~V(0) : V(0));
}

/// sin(pi a) / (pi a).
template <class V> RENSA_FN V sinc(V a) {
  V x = V(3.14159265358979323846) * a;
  if (a == V(0)) return V(1);
  if constexpr (is_complex<V>::value) return divide(sin(x), x);
  else return sin(x) / x;
}

/// The least and the greatest value of V.
template <class V> RENSA_FN V lowest();
template <> RENSA_FN long long lowest<long long>() { return (long long)(1ull << 63); }
template <> RENSA_FN unsigned long long lowest<unsigned long long>() { return 0; }
template <> RENSA_FN float lowest<float>() { return -__builtin_huge_valf(); }
template <> RENSA_FN double lowest<double>() { return -(double)__builtin_huge_valf(); }
template <class V> RENSA_FN V highest();
template <> RENSA_FN long long highest<long long>() { return (long long)~(1ull << 63); }
template <> RENSA_FN unsigned long long highest<unsigned long long>() { return ~0ull; }
template <> RENSA_FN float highest<float>() { return __builtin_huge_valf(); }
template <> RENSA_FN double highest<double>() { return (double)__builtin_huge_valf(); }

}  // namespace m

}  // namespace rensa

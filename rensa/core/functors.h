// The functors of ops.def, over one value type V. Read by the host compiler (after <cmath>), by
// nvcc and by NVRTC; it includes only the table, half.h and power.h, which include nothing else.
//
// V is one of: long long (bool and signed integers), unsigned long long, float (float16, bfloat16
// and float32), double, complex_t<float>, complex_t<double>. Results are narrowed to the output's
// dtype on the store, which for integers gives NumPy's wrap-around.
#pragma once

#include "rensa/core/half.h"
#include "rensa/core/power.h"

namespace rensa {

/// Layout of std::complex<T>, usable on the device.
template <class T> struct complex_t {
  T re, im;
  complex_t() = default;
  RENSA_FN complex_t(T r) : re(r), im(0) {}
  RENSA_FN complex_t(T r, T i) : re(r), im(i) {}
};
template <class T> RENSA_FN complex_t<T> operator+(complex_t<T> a, complex_t<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T> RENSA_FN complex_t<T> operator-(complex_t<T> a, complex_t<T> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class T> RENSA_FN complex_t<T> operator*(complex_t<T> a, complex_t<T> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class T> RENSA_FN bool operator==(complex_t<T> a, complex_t<T> b) {
  return a.re == b.re && a.im == b.im;
}

namespace m {

template <class V> struct is_complex { static constexpr bool value = false; };
template <class T> struct is_complex<complex_t<T>> { static constexpr bool value = true; };
template <class V> struct is_integer { static constexpr bool value = false; };
template <> struct is_integer<long long> { static constexpr bool value = true; };
template <> struct is_integer<unsigned long long> { static constexpr bool value = true; };

template <class V> RENSA_FN V select(bool condition, V a, V b) { return condition ? a : b; }
template <class V> RENSA_FN bool truth(V a) { return !(a == V(0)); }
/// 1 or 0. A conversion of the bool would say the same, but GCC leaves many loops over it scalar.
template <class V> RENSA_FN V flag(bool condition) { return condition ? V(1) : V(0); }

template <class V> RENSA_FN V infinity() {
  if constexpr (is_integer<V>::value) return ~V(0);
  else return V(__builtin_huge_valf());
}

#define RENSA_MATH_1(name, suffix_name)                        \
  RENSA_FN float name(float a) { return ::suffix_name##f(a); } \
  RENSA_FN double name(double a) { return ::suffix_name(a); }
#define RENSA_MATH_2(name, suffix_name)                                    \
  RENSA_FN float name(float a, float b) { return ::suffix_name##f(a, b); } \
  RENSA_FN double name(double a, double b) { return ::suffix_name(a, b); }
RENSA_MATH_1(exp, exp)
RENSA_MATH_1(exp2, exp2)
RENSA_MATH_1(expm1, expm1)
RENSA_MATH_1(log, log)
RENSA_MATH_1(log2, log2)
RENSA_MATH_1(log10, log10)
RENSA_MATH_1(log1p, log1p)
RENSA_MATH_1(sqrt, sqrt)
RENSA_MATH_1(cbrt, cbrt)
RENSA_MATH_1(sin, sin)
RENSA_MATH_1(cos, cos)
RENSA_MATH_1(tan, tan)
RENSA_MATH_1(asin, asin)
RENSA_MATH_1(acos, acos)
RENSA_MATH_1(atan, atan)
RENSA_MATH_1(sinh, sinh)
RENSA_MATH_1(cosh, cosh)
RENSA_MATH_1(tanh, tanh)
RENSA_MATH_1(asinh, asinh)
RENSA_MATH_1(acosh, acosh)
RENSA_MATH_1(atanh, atanh)
RENSA_MATH_1(erf, erf)
RENSA_MATH_2(atan2, atan2)
RENSA_MATH_2(hypot, hypot)
RENSA_MATH_2(copysign, copysign)
RENSA_MATH_2(fmod, fmod)
#undef RENSA_MATH_1
#undef RENSA_MATH_2

// Rounding leaves integers as they are.
template <class V> RENSA_FN V floor(V a) { return a; }
template <class V> RENSA_FN V ceil(V a) { return a; }
template <class V> RENSA_FN V trunc(V a) { return a; }
template <class V> RENSA_FN V rint(V a) { return a; }
RENSA_FN float floor(float a) { return ::floorf(a); }
RENSA_FN double floor(double a) { return ::floor(a); }
RENSA_FN float ceil(float a) { return ::ceilf(a); }
RENSA_FN double ceil(double a) { return ::ceil(a); }
RENSA_FN float trunc(float a) { return ::truncf(a); }
RENSA_FN double trunc(double a) { return ::trunc(a); }
RENSA_FN float rint(float a) { return ::rintf(a); }
RENSA_FN double rint(double a) { return ::rint(a); }

RENSA_FN float abs(float a) { return ::fabsf(a); }
RENSA_FN double abs(double a) { return ::fabs(a); }
RENSA_FN long long abs(long long a) {
  return a < 0 ? (long long)(0ull - (unsigned long long)a) : a;
}
RENSA_FN unsigned long long abs(unsigned long long a) { return a; }
template <class T> RENSA_FN complex_t<T> abs(complex_t<T> a) { return {hypot(a.re, a.im)}; }

template <class V> RENSA_FN V conj(V a) { return a; }
template <class T> RENSA_FN complex_t<T> conj(complex_t<T> a) { return {a.re, -a.im}; }
template <class V> RENSA_FN V negative(V a) {
  if constexpr (is_integer<V>::value) return V(0ull - (unsigned long long)a);
  else if constexpr (is_complex<V>::value) return {-a.re, -a.im};
  else return -a;
}
RENSA_FN bool signbit(float a) { return (detail::bit_cast<unsigned int>(a) >> 31) != 0; }
RENSA_FN bool signbit(double a) { return detail::bit_cast<long long>(a) < 0; }

/// -1, 0 or 1; NaN stays.
template <class V> RENSA_FN V sign(V a) {
  V s = V(V(0) < a) - V(a < V(0));
  return a == a ? s : a;
}

template <class V> RENSA_FN bool isinf(V a) { return abs(a) == infinity<V>(); }
template <class V> RENSA_FN bool isfinite(V a) { return abs(a) < infinity<V>(); }
template <class T> RENSA_FN bool isinf(complex_t<T> a) { return isinf(a.re) | isinf(a.im); }
template <class T> RENSA_FN bool isfinite(complex_t<T> a) {
  return isfinite(a.re) & isfinite(a.im);
}

// maximum and minimum give NaN when either operand is one; fmax and fmin prefer the number. In two
// steps, since GCC makes branches of a selection by both conditions where calls are nested.
template <class V> RENSA_FN V maximum(V a, V b) {
  V greater = b < a ? a : b;
  return !(a == a) ? a : greater;
}
template <class V> RENSA_FN V minimum(V a, V b) {
  V less = a < b ? a : b;
  return !(a == a) ? a : less;
}
template <class V> RENSA_FN V fmax(V a, V b) { return ((b < a) | !(b == b)) ? a : b; }
template <class V> RENSA_FN V fmin(V a, V b) { return ((a < b) | !(b == b)) ? a : b; }

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
  if constexpr (is_integer<V>::value) return floor_divide(V(1), a);
  else return V(1) / a;
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
  V number = a == infinity<V>() ? c : a == -infinity<V>() ? -c : a;
  return a == a ? number : b;
}

RENSA_FN int exponent_of(double b) { return 10000 < b ? 10000 : -10000 < b ? (int)b : -10000; }
RENSA_FN float ldexp(float a, float b) { return ::ldexpf(a, exponent_of(b)); }
RENSA_FN double ldexp(double a, double b) { return ::ldexp(a, exponent_of(b)); }

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

// Complex numbers: Smith's division, powers and reciprocals from it.
template <class T> RENSA_FN complex_t<T> divide(complex_t<T> a, complex_t<T> b) {
  bool by_re = abs(b.im) <= abs(b.re);
  T big = by_re ? b.re : b.im, small = by_re ? b.im : b.re;
  T ratio = small / big, denominator = big + small * ratio;
  if (big == T(0)) return {a.re / abs(b.re), a.im / abs(b.re)};
  return by_re ? complex_t<T>{(a.re + a.im * ratio) / denominator,
                              (a.im - a.re * ratio) / denominator}
               : complex_t<T>{(a.re * ratio + a.im) / denominator,
                              (a.im * ratio - a.re) / denominator};
}
template <class T> RENSA_FN complex_t<T> pow(complex_t<T> a, complex_t<T> b) {
  T radius = hypot(a.re, a.im), angle = atan2(a.im, a.re);
  T log_radius = log(radius);
  T scale = exp(b.re * log_radius - b.im * angle), turn = b.im * log_radius + b.re * angle;
  complex_t<T> result = {scale * cos(turn), scale * sin(turn)};
  bool zero_power = b.re == T(0) && b.im == T(0);
  // A power of zero is zero, or nothing where the exponent does not lie right of zero.
  T power_of_zero = T(0) < b.re ? T(0) : T(__builtin_nanf(""));
  return zero_power       ? complex_t<T>(1)
         : radius == T(0) ? complex_t<T>(power_of_zero, power_of_zero)
                          : result;
}

// Complex floating functions, after Kahan's "Branch cuts for complex elementary functions".
template <class T> RENSA_FN complex_t<T> times_i(complex_t<T> z) { return {-z.im, z.re}; }
template <class T> RENSA_FN complex_t<T> over_i(complex_t<T> z) { return {z.im, -z.re}; }
/// size * direction, where a direction of zero stays one beside an infinite size.
template <class T> RENSA_FN T directed(T size, T direction) {
  T zero = signbit(size) ? -direction : direction;
  return direction == T(0) ? zero : size * direction;
}

template <class T> RENSA_FN complex_t<T> exp(complex_t<T> z) {
  T size = exp(z.re);
  if (z.im == T(0)) return {size, z.im};
  if (size == T(0) && !isfinite(z.im)) return {size, size};
  return {size * cos(z.im), size * sin(z.im)};
}
template <class T> RENSA_FN complex_t<T> exp2(complex_t<T> z) {
  constexpr T kLn2 = T(0.693147180559945309417);
  return exp(complex_t<T>{z.re * kLn2, z.im * kLn2});
}
template <class T> RENSA_FN complex_t<T> expm1(complex_t<T> z) {
  T s = sin(z.im / T(2));
  return {expm1(z.re) * cos(z.im) - T(2) * s * s, directed(exp(z.re), sin(z.im))};
}
template <class T> RENSA_FN complex_t<T> log(complex_t<T> z) {
  T x = abs(z.re), y = abs(z.im), big = maximum(x, y), small = minimum(x, y);
  // Numbers near the greatest are made smaller; near the unit circle the size itself says little.
  bool huge = T(1e30f) < big;
  T size = huge ? hypot(x * T(0x1p-20f), y * T(0x1p-20f)) : hypot(x, y);
  T log_size = log(size) + (huge ? T(13.8629436111989061883) : T(0));
  bool near = T(0.5) < size && size < T(2);
  T precise = log1p((big - T(1)) * (big + T(1)) + small * small) / T(2);
  return {near && !huge ? precise : log_size, atan2(z.im, z.re)};
}
template <class T> RENSA_FN complex_t<T> log2(complex_t<T> z) {
  constexpr T kLog2E = T(1.44269504088896340736);
  complex_t<T> w = log(z);
  return {w.re * kLog2E, w.im * kLog2E};
}
template <class T> RENSA_FN complex_t<T> log10(complex_t<T> z) {
  constexpr T kLog10E = T(0.434294481903251827651);
  complex_t<T> w = log(z);
  return {w.re * kLog10E, w.im * kLog10E};
}
template <class T> RENSA_FN complex_t<T> log1p(complex_t<T> z) {
  T grown = z.re * (T(2) + z.re) + z.im * z.im;  // |1 + z|^2 - 1
  T size = T(-0.5) < grown && grown < T(1) ? log1p(grown) / T(2) : log(hypot(T(1) + z.re, z.im));
  return {size, atan2(z.im, T(1) + z.re)};
}
template <class T> RENSA_FN complex_t<T> sqrt(complex_t<T> z) {
  if (isinf(z.im)) return {abs(z.im), z.im};
  // An eighth of it, so that nothing overflows on the way.
  T x = abs(z.re) * T(0.125), y = z.im * T(0.125);
  T root = T(2) * sqrt(x + hypot(x, y));
  if (root == T(0)) return {T(0), z.im};
  T other = abs(z.im) / (T(2) * root);
  return signbit(z.re) ? complex_t<T>{other, copysign(root, z.im)}
                       : complex_t<T>{root, copysign(other, z.im)};
}

template <class T> RENSA_FN complex_t<T> sinh(complex_t<T> z) {
  return {directed(sinh(z.re), cos(z.im)), directed(cosh(z.re), sin(z.im))};
}
template <class T> RENSA_FN complex_t<T> cosh(complex_t<T> z) {
  return {directed(cosh(z.re), cos(z.im)), directed(sinh(z.re), sin(z.im))};
}
template <class T> RENSA_FN complex_t<T> tanh(complex_t<T> z) {
  T x = abs(z.re);
  if (T(sizeof(T) == 4 ? 11 : 22) < x) {  // 1 but for the sign; what is imaginary vanishes
    T im = isfinite(z.im) ? T(4) * sin(z.im) * cos(z.im) * exp(T(-2) * x) : T(0);
    return {copysign(T(1), z.re), im};
  }
  T t = tan(z.im), s = sinh(z.re), beta = T(1) + t * t;
  T rho = sqrt(T(1) + s * s), denominator = T(1) + beta * s * s;
  return {beta * rho * s / denominator, t / denominator};
}
template <class T> RENSA_FN complex_t<T> sin(complex_t<T> z) { return over_i(sinh(times_i(z))); }
template <class T> RENSA_FN complex_t<T> cos(complex_t<T> z) { return cosh(times_i(z)); }
template <class T> RENSA_FN complex_t<T> tan(complex_t<T> z) { return over_i(tanh(times_i(z))); }

template <class T> RENSA_FN complex_t<T> asin(complex_t<T> z) {
  complex_t<T> a = sqrt(complex_t<T>{T(1) - z.re, -z.im});
  complex_t<T> b = sqrt(complex_t<T>{T(1) + z.re, z.im});
  return {atan2(z.re, a.re * b.re - a.im * b.im), asinh(a.re * b.im - a.im * b.re)};
}
template <class T> RENSA_FN complex_t<T> acos(complex_t<T> z) {
  complex_t<T> a = sqrt(complex_t<T>{T(1) - z.re, -z.im});
  complex_t<T> b = sqrt(complex_t<T>{T(1) + z.re, z.im});
  return {T(2) * atan2(a.re, b.re), asinh(b.re * a.im - b.im * a.re)};
}
template <class T> RENSA_FN complex_t<T> acosh(complex_t<T> z) {
  complex_t<T> a = sqrt(complex_t<T>{z.re - T(1), z.im});
  complex_t<T> b = sqrt(complex_t<T>{z.re + T(1), z.im});
  return {asinh(a.re * b.re + a.im * b.im), T(2) * atan2(a.im, b.re)};
}
template <class T> RENSA_FN complex_t<T> atanh(complex_t<T> z) {
  T x = abs(z.re), y = z.im, below = T(1) - x;
  T re = log1p(T(4) * x / (below * below + y * y)) / T(4);
  return {copysign(re, z.re), atan2(T(2) * y, below * (T(1) + x) - y * y) / T(2)};
}
template <class T> RENSA_FN complex_t<T> asinh(complex_t<T> z) { return over_i(asin(times_i(z))); }
template <class T> RENSA_FN complex_t<T> atan(complex_t<T> z) { return over_i(atanh(times_i(z))); }

template <class T> RENSA_FN complex_t<T> rint(complex_t<T> z) { return {rint(z.re), rint(z.im)}; }
/// z / |z|; 0 stays.
template <class T> RENSA_FN complex_t<T> sign(complex_t<T> z) {
  T size = hypot(z.re, z.im);
  bool both = isinf(z.re) & isinf(z.im);
  complex_t<T> axis = {isinf(z.re) ? copysign(T(1), z.re) : T(0),
                       isinf(z.im) ? copysign(T(1), z.im) : T(0)};
  complex_t<T> nan = {T(__builtin_nanf("")), T(__builtin_nanf(""))};
  if (isinf(size)) return both ? nan : axis;
  return size == T(0) ? complex_t<T>(0) : complex_t<T>{z.re / size, z.im / size};
}

/// sin(pi a) / (pi a).
template <class V> RENSA_FN V sinc(V a) {
  V x = V(3.14159265358979323846) * a;
  if (a == V(0)) return V(1);
  if constexpr (is_complex<V>::value) return divide(sin(x), x);
  else return sin(x) / x;
}

}  // namespace m

template <class T> RENSA_FN complex_t<T> operator/(complex_t<T> a, complex_t<T> b) {
  return m::divide(a, b);
}

/// One functor a row of ops.def: op::exp{}(a).
namespace op {
#define RENSA_UFUNC_1(name, expression)                                        \
  struct name {                                                                \
    template <class V> RENSA_FN V operator()(V a) const { return expression; } \
  };
#define RENSA_UFUNC_2(name, expression)                                             \
  struct name {                                                                     \
    template <class V> RENSA_FN V operator()(V a, V b) const { return expression; } \
  };
#define RENSA_UFUNC_3(name, expression)                                                  \
  struct name {                                                                          \
    template <class V> RENSA_FN V operator()(V a, V b, V c) const { return expression; } \
  };
#define RENSA_UFUNC(name, inputs, rule, expression) RENSA_UFUNC_##inputs(name, expression)
#define RENSA_KERNEL(name, inputs, rule, expression) RENSA_UFUNC_##inputs(name, expression)
#include "rensa/core/ops.def"
#undef RENSA_UFUNC
#undef RENSA_KERNEL
#undef RENSA_UFUNC_1
#undef RENSA_UFUNC_2
#undef RENSA_UFUNC_3
}  // namespace op

}  // namespace rensa

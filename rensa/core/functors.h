// The functors of ops.def, over one value type V. Read by the host compiler (after <cmath>), by
// nvcc and by NVRTC; it includes only the table and half.h, which include nothing.
//
// V is one of: long long (bool and signed integers), unsigned long long, float (float16, bfloat16
// and float32), double, complex_t<float>, complex_t<double>. Results are narrowed to the output's
// dtype on the store, which for integers gives NumPy's wrap-around.
#pragma once

#include "rensa/core/half.h"

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

// maximum and minimum give NaN when either operand is one; fmax and fmin prefer the number.
template <class V> RENSA_FN V maximum(V a, V b) { return ((b < a) | !(a == a)) ? a : b; }
template <class V> RENSA_FN V minimum(V a, V b) { return ((a < b) | !(a == a)) ? a : b; }
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
template <class V> RENSA_FN V remainder(V a, V b) {  // Python's: the sign of b
  V r = fmod(a, b);
  V wrapped = (r < V(0)) != (b < V(0)) ? r + b : r;
  return r == V(0) ? copysign(V(0), b) : wrapped;
}
template <class V> RENSA_FN V floor_divide(V a, V b) {  // numpy's npy_floor_divide
  V mod = fmod(a, b);
  V div = (a - mod) / b;
  div = mod != V(0) && (b < V(0)) != (mod < V(0)) ? div - V(1) : div;
  V floored = floor(div);
  floored = V(0.5) < div - floored ? floored + V(1) : floored;
  V result = div == V(0) ? copysign(V(0), a / b) : floored;
  return b == V(0) ? a / b : result;
}

RENSA_FN float pow(float a, float b) { return ::powf(a, b); }
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

template <class V> RENSA_FN V left_shift(V a, V b) {
  return (unsigned long long)b < 64 ? V((unsigned long long)a << b) : V(0);
}
template <class V> RENSA_FN V right_shift(V a, V b) {
  return (unsigned long long)b < 64 ? V(a >> b) : (a < V(0) ? ~V(0) : V(0));
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

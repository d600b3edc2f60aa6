// Complex numbers as a value type: arithmetic, and the floating functions after Kahan's "Branch
// cuts for complex elementary functions". Read like functors.h, which includes it.
//
// Each function has one formula for ordinary numbers. What it is wrong for (infinities and NaN,
// where C99's Annex G says what comes out, and numbers so large or so small that the formula
// overflows or loses digits on the way) goes to edge::, which is out of line, in double and so
// also for float: narrowed, its results are float's.
#pragma once

#include "rensa/core/real_functors.h"

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define RENSA_COLD __host__ __device__ __noinline__ inline
#else
#define RENSA_COLD inline __attribute__((noinline, cold))
#endif

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

template <class T> struct is_complex<complex_t<T>> { static constexpr bool value = true; };

template <class T> RENSA_FN complex_t<T> abs(complex_t<T> a) { return {hypot(a.re, a.im)}; }
template <class T> RENSA_FN complex_t<T> conj(complex_t<T> a) { return {a.re, -a.im}; }
template <class T> RENSA_FN bool isinf(complex_t<T> a) { return isinf(a.re) | isinf(a.im); }
template <class T> RENSA_FN bool isfinite(complex_t<T> a) {
  return isfinite(a.re) & isfinite(a.im);
}

/// Smith's division.
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
/// The same of 1: zero gives NaN.
template <class T> RENSA_FN complex_t<T> complex_reciprocal(complex_t<T> a) {
  bool by_re = abs(a.im) <= abs(a.re);
  T big = by_re ? a.re : a.im, small = by_re ? a.im : a.re;
  T ratio = small / big, denominator = big + small * ratio;
  return by_re ? complex_t<T>{T(1) / denominator, -ratio / denominator}
               : complex_t<T>{ratio / denominator, T(-1) / denominator};
}

template <class T> RENSA_FN complex_t<T> times_i(complex_t<T> z) { return {-z.im, z.re}; }
template <class T> RENSA_FN complex_t<T> over_i(complex_t<T> z) { return {z.im, -z.re}; }

/// Numbers whose squares, and 1 over them, neither overflow nor lose digits; exponents whose power
/// of e is normal; what e^-2x is nothing beside 1 from.
template <class T> struct Ordinary;
template <> struct Ordinary<float> {
  static constexpr float kMost = 1e18f, kLeast = 1e-18f, kExponent = 87.0f, kFlat = 11.0f;
};
template <> struct Ordinary<double> {
  static constexpr double kMost = 1e150, kLeast = 1e-150, kExponent = 708.0, kFlat = 22.0;
};

// The size of the greater part; NaN where either is one.
template <class T> RENSA_FN T greater_part(complex_t<T> z) { return maximum(abs(z.re), abs(z.im)); }

namespace edge {

inline constexpr double kPi = 3.14159265358979323846, kLn2 = 0.693147180559945309417;
using Complex = complex_t<double>;

RENSA_FN double nan() { return __builtin_nanf(""); }
/// size * direction, where a direction of zero stays one beside an infinite size.
RENSA_FN double directed(double size, double direction) {
  double zero = signbit(size) ? -direction : direction;
  return direction == 0 ? zero : size * direction;
}
/// factor * e^x (cos y + i sin y) without overflow on the way.
RENSA_FN Complex turned_exp(double factor, double x, double y) {
  double half = exp(x * 0.5), first = half * factor;
  return {directed(half, directed(first, cos(y))), directed(half, directed(first, sin(y)))};
}

RENSA_COLD Complex exp(Complex z) {
  bool direction = isfinite(z.im);
  if (isfinite(z.re)) return direction ? turned_exp(1, z.re, z.im) : Complex{nan(), nan()};
  if (isinf(z.re)) {
    double size = signbit(z.re) ? 0.0 : infinity<double>();
    if (direction) return {directed(size, cos(z.im)), directed(size, sin(z.im))};
    return signbit(z.re) ? Complex{0.0, copysign(0.0, z.im)} : Complex{size, nan()};
  }
  return {nan(), z.im == 0 ? z.im : nan()};
}

RENSA_COLD Complex cosh(Complex z) {
  double infinite = infinity<double>(), side = copysign(1.0, z.re);
  if (!(z.re == z.re)) return {nan(), z.im == 0 ? z.im : nan()};
  if (!isfinite(z.im)) {
    return isinf(z.re) ? Complex{infinite, nan()} : Complex{nan(), z.re == 0 ? 0.0 : nan()};
  }
  if (isinf(z.re)) return {directed(infinite, cos(z.im)), directed(infinite, sin(z.im) * side)};
  Complex grown = turned_exp(0.5, abs(z.re), z.im);
  return {grown.re, grown.im * side};
}
RENSA_COLD Complex sinh(Complex z) {
  double infinite = infinity<double>(), side = copysign(1.0, z.re);
  if (!(z.re == z.re)) return {nan(), z.im == 0 ? z.im : nan()};
  if (!isfinite(z.im)) {
    return isinf(z.re) ? Complex{infinite, nan()} : Complex{z.re == 0 ? z.re : nan(), nan()};
  }
  if (isinf(z.re)) return {directed(infinite, cos(z.im) * side), directed(infinite, sin(z.im))};
  Complex grown = turned_exp(0.5, abs(z.re), z.im);
  return {grown.re * side, grown.im};
}
RENSA_COLD Complex tanh(Complex z) {
  if (isinf(z.re)) {
    bool turns = isfinite(z.im) && 1 < abs(z.im);
    return {copysign(1.0, z.re), copysign(0.0, turns ? sin(z.im) * cos(z.im) : z.im)};
  }
  if (z.im == 0) return z;
  return {z.re == 0 ? z.re : nan(), nan()};
}

RENSA_COLD Complex sqrt(Complex z) {
  if (isinf(z.im)) return {abs(z.im), z.im};
  if (isinf(z.re)) {
    double other = z.im == z.im ? 0.0 : nan();
    return signbit(z.re) ? Complex{other, copysign(-z.re, z.im)}
                         : Complex{z.re, copysign(other, z.im)};
  }
  if (!(z.re == z.re) || !(z.im == z.im)) return {nan(), nan()};
  if (z.re == 0 && z.im == 0) return {0.0, z.im};
  double x = abs(z.re) * 0x1p200, y = z.im * 0x1p200;  // very small ones
  double root = m::sqrt((x + hypot(x, y)) * 0.5), other = abs(y) / (2 * root);
  root *= 0x1p-100, other *= 0x1p-100;
  return signbit(z.re) ? Complex{other, copysign(root, z.im)}
                       : Complex{root, copysign(other, z.im)};
}

/// ln |z| of numbers that are large, infinite or NaN.
RENSA_FN double log_size(double x, double y) {
  return m::log(hypot(x * 0x1p-20, y * 0x1p-20)) + 20 * kLn2;
}
RENSA_COLD Complex asinh(Complex z) {
  double size = copysign(log_size(z.re, z.im) + kLn2, z.re);
  if (isinf(z.im) || (isfinite(z.re) && isfinite(z.im))) {
    return {size, z.re == z.re ? copysign(atan2(abs(z.im), abs(z.re)), z.im) : nan()};
  }
  if (isinf(z.re)) return {z.re, z.im == z.im ? copysign(0.0, z.im) : nan()};
  return {z.re == z.re ? nan() : z.re, z.im == 0 ? z.im : nan()};
}
RENSA_COLD Complex asin(Complex z) {
  // As -i asinh(iz), but for a NaN beside a zero and the sign of an infinity.
  if (z.re == 0 && !(z.im == z.im)) return z;
  if ((isinf(z.re) && !(z.im == z.im)) || (isinf(z.im) && !(z.re == z.re))) {
    return {nan(), copysign(infinity<double>(), z.im)};
  }
  return over_i(asinh(times_i(z)));
}
RENSA_COLD Complex acos(Complex z) {
  if (isfinite(z.re) && isfinite(z.im)) {
    double size = log_size(z.re, z.im) + kLn2;
    return {atan2(abs(z.im), z.re), signbit(z.im) ? size : -size};
  }
  Complex turned = asin(z);
  return {isinf(z.re) && isinf(z.im) && signbit(z.re) ? 0.75 * kPi : kPi / 2 - turned.re,
          -turned.im};
}
RENSA_COLD Complex acosh(Complex z) {
  Complex turned = acos(z);
  bool no_size = !(turned.im == turned.im);
  double angle = turned.re == turned.re ? copysign(turned.re, z.im) : turned.re;
  return {no_size ? nan() : abs(turned.im), angle};
}
RENSA_COLD Complex atanh(Complex z) {
  double x = abs(z.re), y = abs(z.im), quarter = copysign(kPi / 2, z.im);
  if (isinf(z.im)) return {z.re == z.re ? copysign(0.0, z.re) : 0.0, quarter};
  if (!(z.im == z.im)) return {isinf(z.re) || z.re == 0 ? copysign(0.0, z.re) : nan(), nan()};
  if (isinf(z.re)) return {copysign(0.0, z.re), quarter};
  if (!(z.re == z.re)) return {nan(), nan()};
  if (x == 1 && y < 1) return {copysign((kLn2 - m::log(y)) * 0.5, z.re), quarter * 0.5};
  double big = maximum(x, y), ratio = minimum(x, y) / big;  // 1 / z
  return {copysign(x / big / big / (1 + ratio * ratio), z.re), quarter};
}

/// a * b; infinities stay infinite beside NaN (C99, G.5.1).
RENSA_FN Complex product(Complex a, Complex b) {
  Complex plain = a * b;
  if (plain.re == plain.re || plain.im == plain.im) return plain;
  bool again = false;
  auto box = [](Complex& inf, Complex& other) {
    inf = {copysign(isinf(inf.re) ? 1.0 : 0.0, inf.re),
           copysign(isinf(inf.im) ? 1.0 : 0.0, inf.im)};
    if (!(other.re == other.re)) other.re = copysign(0.0, other.re);
    if (!(other.im == other.im)) other.im = copysign(0.0, other.im);
  };
  if (isinf(a)) box(a, b), again = true;
  if (isinf(b)) box(b, a), again = true;
  if (!again) return plain;
  Complex direction = a * b;
  return {infinity<double>() * direction.re, infinity<double>() * direction.im};
}

}  // namespace edge

template <class T> RENSA_FN complex_t<T> narrowed(edge::Complex z) { return {T(z.re), T(z.im)}; }
template <class T> RENSA_FN edge::Complex widened(complex_t<T> z) { return {z.re, z.im}; }
// FUNCTION of ordinary numbers of T; for float, in double where only float's range is too small.
#define RENSA_EDGE(function, z)                                                              \
  if constexpr (sizeof(T) == 4) return narrowed<T>(function(complex_t<double>{z.re, z.im})); \
  else return edge::function(z)

template <class T> RENSA_FN complex_t<T> exp(complex_t<T> z) {
  if (abs(z.re) < Ordinary<T>::kExponent && isfinite(z.im)) {
    T size = exp(z.re);
    return {size * cos(z.im), size * sin(z.im)};
  }
  RENSA_EDGE(exp, z);
}
template <class T> RENSA_FN complex_t<T> exp2(complex_t<T> z) {
  constexpr T kLn2 = T(0.693147180559945309417);
  return exp(complex_t<T>{z.re * kLn2, z.im * kLn2});
}
template <class T> RENSA_FN complex_t<T> expm1(complex_t<T> z) {
  T s = sin(z.im / T(2));
  return {expm1(z.re) * cos(z.im) - T(2) * s * s, exp(z.re) * sin(z.im)};
}
template <class T> RENSA_FN complex_t<T> log(complex_t<T> z) {
  T x = abs(z.re), y = abs(z.im), big = maximum(x, y), small = minimum(x, y);
  // Numbers near the ends of the range are brought nearer; near the unit circle the size itself
  // says little.
  bool huge = T(1e30f) < big, tiny = big < T(1e-30f);
  T scale = huge ? T(0x1p-20f) : tiny ? T(0x1p60f) : T(1);
  T shift = huge ? T(13.8629436111989061883) : tiny ? T(-41.5888308335967185650) : T(0);
  T size = hypot(x * scale, y * scale), log_size = log(size) + shift;
  bool near = T(0.5) < size && size < T(2) && !huge && !tiny;
  T precise = log1p((big - T(1)) * (big + T(1)) + small * small) / T(2);
  return {near ? precise : log_size, atan2(z.im, z.re)};
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
  // An eighth of it, so that nothing overflows on the way.
  T x = abs(z.re) * T(0.125), y = abs(z.im) * T(0.125), both = x + y;
  if (Ordinary<T>::kLeast < both && both < infinity<T>()) {
    T root = T(2) * sqrt(x + hypot(x, y)), other = abs(z.im) / (T(2) * root);
    return signbit(z.re) ? complex_t<T>{other, copysign(root, z.im)}
                         : complex_t<T>{root, copysign(other, z.im)};
  }
  RENSA_EDGE(sqrt, z);
}

template <class T> RENSA_FN complex_t<T> sinh(complex_t<T> z) {
  if (abs(z.re) < Ordinary<T>::kExponent && isfinite(z.im)) {
    return {sinh(z.re) * cos(z.im), cosh(z.re) * sin(z.im)};
  }
  RENSA_EDGE(sinh, z);
}
template <class T> RENSA_FN complex_t<T> cosh(complex_t<T> z) {
  if (abs(z.re) < Ordinary<T>::kExponent && isfinite(z.im)) {
    return {cosh(z.re) * cos(z.im), sinh(z.re) * sin(z.im)};
  }
  RENSA_EDGE(cosh, z);
}
template <class T> RENSA_FN complex_t<T> tanh(complex_t<T> z) {
  if (!isfinite(z)) return narrowed<T>(edge::tanh(widened(z)));
  T x = abs(z.re);
  if (Ordinary<T>::kFlat < x) {  // 1 but for the sign; what is imaginary vanishes
    return {copysign(T(1), z.re), T(4) * sin(z.im) * cos(z.im) * exp(T(-2) * x)};
  }
  T t = tan(z.im), s = sinh(z.re), beta = T(1) + t * t;
  T rho = sqrt(T(1) + s * s), denominator = T(1) + beta * s * s;
  return {beta * rho * s / denominator, t / denominator};
}
template <class T> RENSA_FN complex_t<T> sin(complex_t<T> z) {
  complex_t<T> w = over_i(sinh(times_i(z)));
  // The sign of an infinity beside NaN is open; it is positive here as in sinh.
  return {w.re, isinf(z.im) && !isfinite(z.re) ? abs(w.im) : w.im};
}
template <class T> RENSA_FN complex_t<T> cos(complex_t<T> z) { return cosh(times_i(z)); }
template <class T> RENSA_FN complex_t<T> tan(complex_t<T> z) { return over_i(tanh(times_i(z))); }

template <class T> RENSA_FN complex_t<T> asin(complex_t<T> z) {
  if (greater_part(z) < Ordinary<T>::kMost) {
    complex_t<T> a = sqrt(complex_t<T>{T(1) - z.re, -z.im});
    complex_t<T> b = sqrt(complex_t<T>{T(1) + z.re, z.im});
    return {atan2(z.re, a.re * b.re - a.im * b.im), asinh(a.re * b.im - a.im * b.re)};
  }
  RENSA_EDGE(asin, z);
}
template <class T> RENSA_FN complex_t<T> acos(complex_t<T> z) {
  if (greater_part(z) < Ordinary<T>::kMost) {
    complex_t<T> a = sqrt(complex_t<T>{T(1) - z.re, -z.im});
    complex_t<T> b = sqrt(complex_t<T>{T(1) + z.re, z.im});
    return {T(2) * atan2(a.re, b.re), asinh(b.re * a.im - b.im * a.re)};
  }
  RENSA_EDGE(acos, z);
}
template <class T> RENSA_FN complex_t<T> acosh(complex_t<T> z) {
  if (greater_part(z) < Ordinary<T>::kMost) {
    complex_t<T> a = sqrt(complex_t<T>{z.re - T(1), z.im});
    complex_t<T> b = sqrt(complex_t<T>{z.re + T(1), z.im});
    return {asinh(a.re * b.re + a.im * b.im), T(2) * atan2(a.im, b.re)};
  }
  RENSA_EDGE(acosh, z);
}
template <class T> RENSA_FN complex_t<T> atanh(complex_t<T> z) {
  T x = abs(z.re), y = z.im, below = T(1) - x;
  bool beside_one = below == T(0) && y != T(0) && abs(y) < Ordinary<T>::kLeast;
  if (greater_part(z) < Ordinary<T>::kMost && !beside_one) {
    T re = log1p(T(4) * x / (below * below + y * y)) / T(4);
    return {copysign(re, z.re), atan2(T(2) * y, below * (T(1) + x) - y * y) / T(2)};
  }
  RENSA_EDGE(atanh, z);
}
template <class T> RENSA_FN complex_t<T> asinh(complex_t<T> z) { return over_i(asin(times_i(z))); }
template <class T> RENSA_FN complex_t<T> atan(complex_t<T> z) {
  complex_t<T> w = over_i(atanh(times_i(z)));
  // A zero beside NaN is positive: a NaN that is negated has its own sign on a GPU.
  return {w.re, z.im == z.im ? w.im : abs(w.im)};
}
#undef RENSA_EDGE

// 0 to a complex power: 1 for 0, 0 where the exponent's real part is positive, else NaN.
template <class T> RENSA_FN complex_t<T> power_of_zero(complex_t<T> b) {
  T part = b.re == T(0) && b.im == T(0) ? T(1) : T(0) < b.re ? T(0) : T(__builtin_nanf(""));
  return {part, part == part && part != T(0) ? T(0) : part};
}
/// By multiplications, 0 < |n| < 100; in NumPy's order.
template <class T> RENSA_FN complex_t<T> whole_power(complex_t<T> a, int n) {
  if (n == 1) return a;
  if (n == 2) return a * a;
  if (n == 3) return a * (a * a);
  complex_t<T> result = T(1);
  for (int left = n < 0 ? -n : n; left != 0; left >>= 1, a = a * a) {
    if (left & 1) result = result * a;
  }
  return n < 0 ? divide(complex_t<T>(T(1)), result) : result;
}
template <class T> RENSA_FN complex_t<T> pow(complex_t<T> a, complex_t<T> b) {
  if (a.re == T(0) && a.im == T(0)) return power_of_zero(b);
  if (b.im == T(0) && abs(b.re) < T(100) && trunc(b.re) == b.re) {
    return b.re == T(0) ? complex_t<T>(T(1)) : whole_power(a, int(b.re));
  }
  T log_radius = log(hypot(a.re, a.im)), angle = atan2(a.im, a.re);
  T grown = b.re * log_radius - b.im * angle, turn = b.im * log_radius + b.re * angle;
  bool in_range = abs(log_radius) < Ordinary<T>::kExponent / T(2);
  if (in_range && abs(grown) < Ordinary<T>::kExponent && isfinite(turn)) {
    T scale = exp(grown);
    return {scale * cos(turn), scale * sin(turn)};
  }
  return narrowed<T>(exp(edge::product(widened(b), log(widened(a)))));
}

template <class T> RENSA_FN complex_t<T> rint(complex_t<T> z) { return {rint(z.re), rint(z.im)}; }
/// z / |z|; 0 stays.
template <class T> RENSA_FN complex_t<T> sign(complex_t<T> z) {
  bool large = Ordinary<T>::kMost < greater_part(z);
  T scale = large ? T(0.25) : T(1), size = hypot(z.re * scale, z.im * scale);
  bool both = isinf(z.re) & isinf(z.im);
  complex_t<T> axis = {isinf(z.re) ? copysign(T(1), z.re) : T(0),
                       isinf(z.im) ? copysign(T(1), z.im) : T(0)};
  complex_t<T> nan = {T(__builtin_nanf("")), T(__builtin_nanf(""))};
  if (isinf(size)) return both ? nan : axis;
  return size == T(0) ? complex_t<T>(0) : complex_t<T>{z.re * scale / size, z.im * scale / size};
}

}  // namespace m

template <class T> RENSA_FN complex_t<T> operator/(complex_t<T> a, complex_t<T> b) {
  return m::divide(a, b);
}

}  // namespace rensa

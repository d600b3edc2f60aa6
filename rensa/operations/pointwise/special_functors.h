// Special functions over float and double: what the rows of special.def call. Read like
// core/functors.h.
#pragma once

#include "rensa/core/functors.h"

// As RENSA_FN, of what is too long to stand in every kernel of a GPU. (On the CPU a function that
// is not inlined could become the whole program's.)
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define RENSA_LONG_FN __host__ __device__ __noinline__
#else
#define RENSA_LONG_FN RENSA_FN
#endif

namespace rensa::m {

/// sum * t + c, rounded once where that is an instruction.
RENSA_FN float multiply_add(float sum, float t, float c) {
#if RENSA_HAS_FMA
  return ::fmaf(sum, t, c);
#else
  return sum * t + c;
#endif
}
/// The polynomial of t with these coefficients, that of the highest power first.
template <class... Coefficients>
RENSA_FN float polynomial(float t, float sum, Coefficients... others) {
  ((sum = multiply_add(sum, t, others)), ...);
  return sum;
}

// The vector code of a CPU: selections alone, where libm's erfcf is a call for each element.
#if RENSA_HAS_FMA && !defined(__CUDA_ARCH__)
#define RENSA_VECTOR_ERFC 1
/// exp(a * a) * erfc(a) for 0 <= a: (1 + 2 a) times it is a polynomial of (a - 3) / (a + 3), of
/// which this is a minimax fit, its constants rounded from the lowest on; within 5e-8.
RENSA_FN float scaled_erfc(float a) {
  float near = a < 1e8f ? a : 1e8f, inverse = 1.0f / (near + 3.0f);
  float t = (near - 3.0f) * inverse;
  t = ::fmaf(::fmaf(-near, t, ::fmaf(-3.0f, t + 1.0f, near)), inverse, t);  // what rounding took
  float fit =
      polynomial(t, 8.009274461e-05f, -6.723130355e-05f, -7.346457569e-04f, 1.811937895e-03f,
                 2.507827012e-03f, -2.370848879e-02f, 6.831258535e-02f, -1.192948744e-01f,
                 1.296448261e-01f, -4.755971953e-02f, -1.356211007e-01f, 1.253008008e+00f);
  return fit / ::fmaf(2.0f, a, 1.0f);
}
RENSA_FN float erfc(float a) {
  float x = abs(a), square = x * x, power = exp(-square);
  power = ::fmaf(power, ::fmaf(-x, x, square), power);  // of the square before it was rounded
  float tail = select(10.1f < x, 0.0f, power * scaled_erfc(x));
  return select(a < 0.0f, 2.0f - tail, tail);
}
#else
RENSA_FN float erfc(float a) { return ::erfcf(a); }
#endif
RENSA_FN double erfc(double a) { return ::erfc(a); }

#if defined(__CUDA_ARCH__)
// lgamma over float. CUDA's has five ranges with a text each, and a warp's threads wait for each
// other in all that they meet; here what is likely is in three, the first without a branch. The
// fits are minimax (by Lawson's iteration), their constants rounded from the lowest on. For
// positive numbers the result is within 2.6 of the last place's units, CUDA's within 3.

/// ln a = power * 2^-23 * ln 2 + rest, of a positive and normal, |rest| up to that of 2/3.
struct SplitLog {
  float power, rest;
};
RENSA_FN SplitLog split_log(float a) {
  unsigned bits = detail::bit_cast<unsigned>(a), exponent = (bits - 0x3f2aaaabu) & 0xff800000u;
  float t = detail::bit_cast<float>(bits - exponent) - 1.0f;
  float fit =
      polynomial(t, -1.288020909e-01f, 1.398459375e-01f, -1.218744740e-01f, 1.400573403e-01f,
                 -1.668019742e-01f, 2.001042664e-01f, -2.499980628e-01f, 3.333321512e-01f, -0.5f);
  return {float(int(exponent)), ::fmaf(t * t, fit, t)};
}
inline constexpr float kLogTwo = 0.69314718055994530942f * 0x1p-23f;  // with its powers

/// 0 < x < 1.5: as log gamma(1 + x) - ln x where that is not beside a zero. The polynomial is that
/// of log gamma(1 - t) / t, -0.7 <= t <= 0.3; in front of 0 it is 0 and not -0.
RENSA_FN float lgamma_small(float x) {
  bool above = x < 0.7f;
  float t = (above ? 0.0f : 1.0f) - x;
  float result =
      t * polynomial(t, 2.033058926e-02f, 6.760589778e-02f, 1.053043902e-01f, 1.175317466e-01f,
                     1.259349436e-01f, 1.434749514e-01f, 1.695137322e-01f, 2.074199617e-01f,
                     2.705818713e-01f, 4.006845951e-01f, 8.224670291e-01f, 5.772156715e-01f);
  SplitLog log = split_log(above ? x : 1.0f);
  return ::fmaf(-log.power, kLogTwo, result - log.rest);
}
/// 1.5 <= x < 3.
RENSA_FN float lgamma_beside_two(float x) {
  float t = x - 2.0f;
  return t * polynomial(t, 5.646678983e-05f, -2.283455251e-04f, 5.318518379e-04f, -1.193208620e-03f,
                        2.886795439e-03f, -7.386781275e-03f, 2.058109641e-02f, -6.735204160e-02f,
                        3.224670291e-01f, 4.227843285e-01f);
}
/// 3 <= x, by Stirling's series: (x - 1/2) (ln x - 1) + (ln(2 pi) - 1) / 2 + 1 / 12 x - ...
RENSA_FN float lgamma_large(float x) {
  SplitLog log = split_log(x);
  float inverse = instruction::reciprocal(x), square = inverse * inverse;
  float series = polynomial(square, 6.792441709e-04f, -2.769936342e-03f, 8.333316445e-02f);
  float below = ::fmaf(log.power, kLogTwo, -1.0f) + log.rest;
  return ::fmaf(x - 0.5f, below, ::fmaf(inverse, series, 0.41893853320467274178f));
}
/// Of negative numbers, 0, subnormal numbers and NaN.
inline __device__ __noinline__ float lgamma_below(float a) {
  float x = ::fabsf(a);
  if (x < 0x1p-30f) return -log(x);
  // gamma(x) gamma(-x) = -pi / (x sin(pi x))
  SplitLog log = split_log(x * ::fabsf(::sinpif(x)));
  float both = ::fmaf(-log.power, kLogTwo, 1.14472988584940017414f - log.rest);
  float above = x < 1.5f ? lgamma_small(x) : x < 3.0f ? lgamma_beside_two(x) : lgamma_large(x);
  return ::floorf(x) == x ? infinity<float>() : both - above;
}
/// log |gamma(a)|.
RENSA_FN float lgamma(float a) {
  constexpr unsigned kLeast = power::kSmallestNormal, kUpTo = 0x3fc00000u;  // 1.5
  if (detail::bit_cast<unsigned>(a) - kLeast < kUpTo - kLeast) return lgamma_small(a);
  if (!(1.5f <= a)) return lgamma_below(a);
  return a < 3.0f ? lgamma_beside_two(a) : lgamma_large(a);
}
#else
/// log |gamma(a)|. The host's lgamma writes its sign to a global variable; lgamma_r does not.
RENSA_FN float lgamma(float a) {
  int sign = 0;
  return ::lgammaf_r(a, &sign);
}
#endif
#if defined(__CUDA_ARCH__) || defined(__CUDACC_RTC__)
RENSA_FN double lgamma(double a) { return ::lgamma(a); }
#else
RENSA_FN double lgamma(double a) {
  int sign = 0;
  return ::lgamma_r(a, &sign);
}
#endif

/// What is no number.
template <class V> RENSA_FN V not_a_number() { return infinity<V>() - infinity<V>(); }
/// Where a sum is as exact as it gets.
template <class V> RENSA_FN V rounding() { return sizeof(V) == 8 ? V(1.2e-16) : V(6e-8); }

/// exp(a * a) * erfc(a): where erfc(a) is near 0 by its continued fraction.
template <class V> RENSA_LONG_FN V erfcx(V a) {
  if (!(V(5) < a)) return exp(a * a) * erfc(a);
  V tail = a;
  for (int k = 20; k > 0; --k) tail = a + V(k) / (V(2) * tail);
  return V(0.56418958354775628695) / tail;
}

/// log of the normal distribution's share below a.
template <class V> RENSA_LONG_FN V log_ndtr(V a) {
  V t = a * V(0.70710678118654752440);
  if (V(-1) < a) return log1p(V(-0.5) * erfc(t));
  return log(V(0.5) * erfcx(-t)) - t * t;
}

#if RENSA_VECTOR_ERFC
RENSA_FN float erfcx(float a) {
  float square = a * a, power = exp(square), scaled = scaled_erfc(abs(a));
  power = ::fmaf(power, ::fmaf(a, a, -square), power);
  float below = select(a < -9.39f, infinity<float>(), 2.0f * power - scaled);
  return select(a < 0.0f, below, scaled);
}
RENSA_FN float log_ndtr(float a) {
  float t = a * 0.70710678118654752440f, near = log1p(-0.5f * erfc(t));
  float far = log(0.5f * scaled_erfc(abs(t))) - t * t;
  return select(-1.0f < a, near, far);
}
#elif defined(__CUDA_ARCH__)
RENSA_FN float log_ndtr(float a) {  // CUDA's erfcx has no branch, and a warp's threads meet in two
  float t = a * 0.70710678118654752440f;
  if (t < 0.0f) return log(0.5f * ::erfcxf(-t)) - t * t;
  return log1p(-0.5f * erfc(t));
}
#endif

/// y with erfc(y) = q for 0 < q <= 1/2, from log(q) and then by Halley's steps on
/// erfc(y) / q = 1, both scaled by exp(y * y) so that nothing vanishes far out.
template <class V> RENSA_LONG_FN V erfcinv_tail(V q) {
  V l = -log(q);
  V y = sqrt(l);
  // erfc(y) ~ exp(-y * y) / (y * sqrt(pi)): the start for what lies far out, and a fit elsewhere.
  if (V(2) < l) y = sqrt(l - log(y * V(1.77245385090551602730)));
  else y = V(0.4769362762044699) + V(0.5) * (l - V(0.69314718055994530942));
  for (int k = 0; k < (sizeof(V) == 8 ? 5 : 4); ++k) {
    V scaled = erfcx(y);
    // erfc(y) - q over the derivative -2 / sqrt(pi) * exp(-y * y).
    V step = (scaled - exp(y * y - l)) * V(0.88622692545275801365);
    y += step / (V(1) + y * step);
  }
  return y;
}
/// y with erf(y) = a.
template <class V> RENSA_LONG_FN V erfinv(V a) {
  V x = abs(a);
  if (!(x <= V(1))) return not_a_number<V>();
  if (x == V(1)) return copysign(infinity<V>(), a);
  if (V(0.5) < x) return copysign(erfcinv_tail(V(1) - x), a);
  // The series' first terms, then Halley's steps.
  V t = V(0.78539816339744830962) * a * a;
  V y = V(0.88622692545275801365) * a *
        (V(1) + t * (V(1) / V(3) + t * (V(7) / V(30) + t * (V(127) / V(630)))));
  for (int k = 0; k < (sizeof(V) == 8 ? 3 : 2); ++k) {
    V step = (erf(y) - a) * V(0.88622692545275801365) * exp(y * y);
    y -= step / (V(1) + y * step);
  }
  return y;
}
/// y with erfc(y) = a.
template <class V> RENSA_LONG_FN V erfcinv(V a) {
  if (!((V(0) <= a) & (a <= V(2)))) return not_a_number<V>();
  if (a == V(0)) return infinity<V>();
  if (a == V(2)) return -infinity<V>();
  if (a < V(0.5)) return erfcinv_tail(a);
  if (V(1.5) < a) return -erfcinv_tail(V(2) - a);
  return erfinv(V(1) - a);
}

// Over float, y / x of y with erf(y) = x and erfc(y) = q, where x = 1 - q, by w = -log(q * (2 -
// q)). The first two are those of M. Giles, "Approximating the erfinv function", GPU Computing Gems
// Jade Edition, 2011, for w < 5 and then as far as there are floats below 1. The third one, for all
// smaller q, is a minimax fit (by Lawson's iteration). What comes of them is within 3e-7 of itself.
RENSA_FN float erfinv_near(float w) {
  return polynomial(w - 2.5f, 2.81022636e-08f, 3.43273939e-07f, -3.5233877e-06f, -4.39150654e-06f,
                    0.00021858087f, -0.00125372503f, -0.00417768164f, 0.246640727f, 1.50140941f);
}
RENSA_FN float erfinv_tail(float root) {
  return polynomial(root - 3.0f, -0.000200214257f, 0.000100950558f, 0.00134934322f, -0.00367342844f,
                    0.00573950773f, -0.0076224613f, 0.00943887047f, 1.00167406f, 2.83297682f);
}
RENSA_FN float erfinv_far(float root) {
  return polynomial(root - 7.0f, 1.551889917e-08f, -9.618592478e-08f, 2.430417329e-07f,
                    -1.270977212e-06f, 6.372594984e-06f, 5.281877615e-06f, -5.131979590e-04f,
                    1.008596375e+00f, 6.869019814e+00f);
}
RENSA_FN float erfinv_of_log(float x, float w) {
#if defined(__CUDA_ARCH__)
  if (w < 5.0f) return x * erfinv_near(w);  // as most values are: few threads wait for others
  float root = sqrt(w);
  return x * (w < 16.0f ? erfinv_tail(root) : erfinv_far(root));
#else
  float near = erfinv_near(w), root = sqrt(w);  // loops with selections alone become vector code
  float tail = erfinv_tail(root), far = erfinv_far(root);
  return x * select(w < 5.0f, near, select(w < 16.0f, tail, far));
#endif
}
#if defined(__CUDA_ARCH__)
/// CUDA's, within 2 of the last place's units: its logarithm is an instruction.
RENSA_FN float erfinv(float a) { return ::erfinvf(a); }
#else
RENSA_FN float erfinv(float a) {
  float x = abs(a);
  // NaN outside of [-1, 1], as the logarithm is.
  float y = erfinv_of_log(a, -log((1.0f - x) * (1.0f + x)));
  return select(x == 1.0f, copysign(infinity<float>(), a), y);
}
#endif
RENSA_FN float erfcinv(float a) {
  float y = erfinv_of_log(1.0f - a, -log(a * (2.0f - a)));
  y = select(a == 0.0f, infinity<float>(), y);
  return select(a == 2.0f, -infinity<float>(), y);
}

/// The derivative of lgamma: below 0 by reflection, else moved up to where its asymptotic series
/// converges.
template <class V> RENSA_LONG_FN V digamma(V a) {
  if (a == V(0)) return copysign(infinity<V>(), -a);
  V reflected = 0, x = a;
  if (a < V(0)) {
    V part = a - floor(a);
    if (part == V(0)) return not_a_number<V>();
    reflected = V(3.14159265358979323846) / tan(V(3.14159265358979323846) * part);
    x = V(1) - a;
  }
  V sum = 0;
  while (x < V(10)) {
    sum -= V(1) / x;
    x += V(1);
  }
  V w = V(1) / (x * x);
  V series = w * (V(1) / V(12) -
                  w * (V(1) / V(120) -
                       w * (V(1) / V(252) -
                            w * (V(1) / V(240) - w * (V(1) / V(132) - w * (V(691) / V(32760)))))));
  return sum + log(x) - V(0.5) / x - series - reflected;
}

/// The derivative of digamma: below 0 by reflection, else moved up to where its asymptotic series
/// converges.
template <class V> RENSA_LONG_FN V trigamma(V a) {
  V reflected = 0, x = a, sign = 1;
  if (a <= V(0)) {
    V part = a - floor(a + V(0.5));  // of -1e-30 all digits
    if (part == V(0)) return infinity<V>();
    V sine = sin(V(3.14159265358979323846) * part);
    reflected = V(9.86960440108935861883) / (sine * sine);
    x = V(1) - a;
    sign = -1;
  }
  V sum = 0;
  while (x < V(sizeof(V) == 4 ? 6 : 10)) {
    sum += V(1) / (x * x);
    x += V(1);
  }
  V r = V(1) / x, w = r * r;
  V series =
      w *
      (V(1) / V(6) -
       w * (V(1) / V(30) -
            w * (V(1) / V(42) - w * (V(1) / V(30) - w * (V(5) / V(66) - w * (V(691) / V(2730)))))));
  return reflected + sign * (sum + r * (V(1) + V(0.5) * r + series));
}

/// The sum of (q + k)^-s over k = 0, 1, ..., by Euler and Maclaurin; for s > 1.
template <class V> RENSA_LONG_FN V zeta(V s, V q) {
  // (2 k)! / B(2 k)
  constexpr double kTerms[] = {12.0,
                               -720.0,
                               30240.0,
                               -1209600.0,
                               47900160.0,
                               -1.8924375803183791606e9,
                               7.47242496e10,
                               -2.950130727918164224e12,
                               1.1646782814350067249e14,
                               -4.5979787224074726105e15,
                               1.8152105401943546773e17,
                               -7.1661652561756670113e18};
  if (!(V(1) <= s) || !(q == q)) return not_a_number<V>();
  if (s == V(1)) return infinity<V>();
  if (q <= V(0)) {
    if (q == floor(q)) return infinity<V>();
    if (s != floor(s)) return not_a_number<V>();
  }
  V sum = pow(q, -s), x = q, power = 0;
  for (int k = 0; k < 9 || x <= V(9); ++k) {
    x += V(1);
    power = pow(x, -s);
    sum += power;
    if (abs(power) < rounding<V>() * abs(sum)) return sum;
  }
  sum += power * x / (s - V(1)) - V(0.5) * power;
  // power s (s + 1) (s + 2) ... / x^k: the factors alone would overflow.
  V product = power, k = 0;
  for (double term : kTerms) {
    product *= (s + k) / x;
    V t = product / V(term);
    sum += t;
    if (abs(t) < rounding<V>() * abs(sum)) return sum;
    k += V(1);
    product *= (s + k) / x;
    k += V(1);
  }
  return sum;
}

/// The n-th derivative of digamma.
template <class V> RENSA_LONG_FN V polygamma(V n, V a) {
  if (n == V(0)) return digamma(a);
  if (n == V(1)) return trigamma(a);
  V magnitude = exp(lgamma(n + V(1))) * zeta(n + V(1), a);
  return fmod(n, V(2)) == V(0) ? -magnitude : magnitude;
}

}  // namespace rensa::m

#undef RENSA_LONG_FN
#undef RENSA_VECTOR_ERFC

// The functors that are the same words over every value type, and the functions of real numbers
// under one name for float and double. Read like functors.h, which includes it.
#pragma once

#include "rensa/core/half.h"

namespace rensa::m {

template <class V> struct is_complex { static constexpr bool value = false; };
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
#undef RENSA_MATH_1
#undef RENSA_MATH_2

RENSA_FN double fmod(double a, double b) { return ::fmod(a, b); }
#if defined(__CUDA_ARCH__)
namespace instruction {
/// What the GPU's instructions give: within an ulp or two, subnormal numbers taken for 0.
RENSA_FN float reciprocal(float a) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(a));
  return result;
}
RENSA_FN float reciprocal_root(float a) {
  float result;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(a));
  return result;
}
}  // namespace instruction

// To the bits of CUDA's fmodf and of 1 / sqrtf, which take branches for every element: threads wait
// for each other there, and no element's instructions stand between those of another.

inline __device__ __noinline__ float long_fmod(float a, float b) { return ::fmodf(a, b); }
/// What is left of |a| by the nearest whole number of |b|, or once |b| more. That is exact wherever
/// it is from 0 to |b|, as it is then made of the last bits of b; of quotients above 2^22 it is
/// not.
RENSA_FN float fmod(float a, float b) {
  constexpr float kShift = 0x1.8p23f;
  float x = ::fabsf(a), y = ::fabsf(b);
  float whole = (__fmul_rn(x, instruction::reciprocal(y)) + kShift) - kShift;
  float rest = ::fmaf(-whole, y, x);
  rest = rest < 0.0f ? rest + y : rest;
  bool less = x < y;
  // As bits negative numbers and NaN are greater than any other.
  if (!less & (detail::bit_cast<unsigned>(rest) >= detail::bit_cast<unsigned>(y))) {
    return long_fmod(a, b);
  }
  return ::copysignf(less ? x : rest, a);
}
/// By the steps that the compiler takes for roots and quotients of usual size.
RENSA_FN float rsqrt(float a) {
  bool small = ::fabsf(a) < 0x1p-101f;
  float x = small ? a * 0x1p48f : a, start = instruction::reciprocal_root(x);
  float root = __fmul_rn(x, start);
  root = ::fmaf(::fmaf(-root, root, x), start * 0.5f, root);
  float inverse = instruction::reciprocal(root);
  inverse = ::fmaf(::fmaf(-root, inverse, 1.0f), inverse, inverse);
  inverse = root == root ? inverse : start;  // of 0, infinity, negative numbers and NaN
  return small ? inverse * 0x1p24f : inverse;
}
#else
RENSA_FN float fmod(float a, float b) { return ::fmodf(a, b); }
#endif

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

template <class V> RENSA_FN V conj(V a) { return a; }
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
/// minimum(maximum(a, b), c), in steps that each compile to one selection.
template <class V> RENSA_FN V clip(V a, V b, V c) {
  V least = b < a ? a : b;
  V both = least < c ? least : c;
  V known = b == b ? both : b;
  return a == a ? known : a;
}
template <class V> RENSA_FN V fmax(V a, V b) { return ((b < a) | !(b == b)) ? a : b; }
template <class V> RENSA_FN V fmin(V a, V b) { return ((a < b) | !(b == b)) ? a : b; }

}  // namespace rensa::m

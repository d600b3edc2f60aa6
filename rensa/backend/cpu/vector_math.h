// Tells the compiler which functions of libm have vector versions in glibc's libmvec, so that loops
// over them are vectorized. To be included before functors.h's callers are compiled.
#pragma once

#include <cmath>

// Sanitizers see the scalar functions instead, which they intercept.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    defined(__OPTIMIZE__)
#if __GLIBC__ > 2 || (__GLIBC__ == 2 && __GLIBC_MINOR__ >= 35)
#define RENSA_SIMD __attribute__((simd("notinbranch")))
#define RENSA_VECTOR_1(name)                           \
  extern "C" RENSA_SIMD float name##f(float) noexcept; \
  extern "C" RENSA_SIMD double name(double) noexcept;
#define RENSA_VECTOR_2(name)                                  \
  extern "C" RENSA_SIMD float name##f(float, float) noexcept; \
  extern "C" RENSA_SIMD double name(double, double) noexcept;
RENSA_VECTOR_1(exp)
RENSA_VECTOR_1(exp2)
RENSA_VECTOR_1(expm1)
RENSA_VECTOR_1(log)
RENSA_VECTOR_1(log2)
RENSA_VECTOR_1(log10)
RENSA_VECTOR_1(log1p)
RENSA_VECTOR_1(cbrt)
RENSA_VECTOR_1(sin)
RENSA_VECTOR_1(cos)
RENSA_VECTOR_1(tan)
RENSA_VECTOR_1(asin)
RENSA_VECTOR_1(acos)
RENSA_VECTOR_1(atan)
RENSA_VECTOR_1(sinh)
RENSA_VECTOR_1(cosh)
RENSA_VECTOR_1(tanh)
RENSA_VECTOR_1(asinh)
RENSA_VECTOR_1(acosh)
RENSA_VECTOR_1(atanh)
RENSA_VECTOR_1(erf)
RENSA_VECTOR_2(pow)
RENSA_VECTOR_2(atan2)
RENSA_VECTOR_2(hypot)
#undef RENSA_VECTOR_1
#undef RENSA_VECTOR_2
#undef RENSA_SIMD
#endif
#endif

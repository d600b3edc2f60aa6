// What fused kernels do with values beside the rows of tables: the steps between the storage types
// of arrays and value types. Read by NVRTC and the machine's compiler.
#pragma once

#include "rensa/portable/conversion.h"

namespace rensa {
namespace fused {

template <class To> struct to {
  template <class From> RENSA_FN To operator()(From x) const { return convert<To>(x); }
};
/// A stored element as 0 or 1.
template <class V> struct truth_as {
  template <class T> RENSA_FN V operator()(T x) const { return convert<V>(convert<bool>(x)); }
};
struct is_set {
  RENSA_FN bool operator()(unsigned char x) const { return x != 0; }
};

#if !defined(__CUDACC__) && !defined(__CUDACC_RTC__)
template <class T> inline T value_at(T number, int) { return number; }
template <class T, int N> inline T value_at(const T (&block)[N], int e) { return block[e]; }

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
  for (int e = 0; e < N; ++e) out[e] = f(value_at(a, e)...);
}
#undef RENSA_EACH
#endif

}  // namespace fused
}  // namespace rensa

// The functors of reductions.def. Read by the host compiler, nvcc and NVRTC.
#pragma once

#include "rensa/core/functors.h"

namespace rensa {

namespace m {
// The identities of max and min over V.
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

/// One functor a row: red::sum::map(a), reduce(a, b), post(a, n), identity<V>().
namespace red {
#define RENSA_REDUCTION(name, rule, identity_value, map_value, reduce_value, post_value)        \
  struct name {                                                                                 \
    template <class V> static RENSA_FN V identity() { return identity_value; }                  \
    template <class V> static RENSA_FN V map(V a) { return map_value; }                         \
    template <class V> static RENSA_FN V reduce(V a, V b) { return reduce_value; }              \
    template <class V> static RENSA_FN V post(V a, long long n) { return (void)n, post_value; } \
  };
#include "rensa/core/reductions.def"
#undef RENSA_REDUCTION
}  // namespace red

}  // namespace rensa

// Of the rows of a table of reductions.def that is included next, in namespace red, a functor each:
// red::sum::map(a), reduce(a, b), post(a, n), identity<V>(). end_reduction_functors.h ends this.
#include "rensa/core/functors.h"

#define RENSA_REDUCTION(name, rule, identity_value, map_value, reduce_value, post_value)        \
  struct name {                                                                                 \
    template <class V> static RENSA_FN V identity() { return identity_value; }                  \
    template <class V> static RENSA_FN V map(V a) { return map_value; }                         \
    template <class V> static RENSA_FN V reduce(V a, V b) { return reduce_value; }              \
    template <class V> static RENSA_FN V post(V a, long long n) { return (void)n, post_value; } \
  };

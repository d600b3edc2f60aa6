// Of the rows of a table of ops.def that is included next, in namespace op, a functor each:
// op::exp{}(a). end_functors.h ends this.
#include "rensa/core/functors.h"

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
#define RENSA_INTERNAL(name, inputs, rule, expression) RENSA_UFUNC_##inputs(name, expression)

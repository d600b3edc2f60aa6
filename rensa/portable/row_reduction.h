// A row of reductions.def over one value type, as reductions carry it. Read by the host's compiler
// and by nvcc.
#pragma once

#include "rensa/core/half.h"

namespace rensa::red {

template <class Row, class V> struct Of {
  static RENSA_FN V identity() { return Row::template identity<V>(); }
  static RENSA_FN V take(V acc, V value) { return Row::reduce(acc, Row::map(value)); }
  static RENSA_FN V combine(V a, V b) { return Row::reduce(a, b); }
};

}  // namespace rensa::red

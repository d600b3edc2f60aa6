// What running sums and products do to two values, for the CPU and the GPU.
#pragma once

#include "rensa/core/functors.h"

namespace rensa {

/// Joined with the identity a value keeps its bits: of floats that is -0.0, since 0.0 + -0.0 is
/// 0.0.
struct RunningSum {
  template <class V> static RENSA_FN V identity() {
    if constexpr (m::is_integer<V>::value) return V(0);
    else if constexpr (m::is_complex<V>::value) return V(-0.0f, -0.0f);
    else return V(-0.0f);
  }
  template <class V> RENSA_FN V operator()(V a, V b) const { return a + b; }
};

/// A factor of 1 changes nothing: by the rule for complex numbers, 1 times infinity has a NaN part.
struct RunningProduct {
  template <class V> static RENSA_FN V identity() { return V(1); }
  template <class V> RENSA_FN V operator()(V a, V b) const {
    if constexpr (m::is_complex<V>::value) return a == V(1) ? b : b == V(1) ? a : a * b;
    else return a * b;
  }
};

}  // namespace rensa

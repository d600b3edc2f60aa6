// When two numbers are close. Read by the host compiler and by nvcc.
#pragma once

#include <cmath>

#include "rensa/core/functors.h"

namespace rensa {

/// What numpy.isclose(a, b) holds for close, in double.
struct Closeness {
  double rtol = 0, atol = 0;
  bool equal_nan = false;

  RENSA_FN bool operator()(double a, double b) const {
    bool near = (m::abs(a - b) <= m::abs(b) * rtol + atol) & m::isfinite(b);
    return near | (a == b) | (equal_nan & !(a == a) & !(b == b));
  }
};

}  // namespace rensa

// Functions that draw random numbers.
#pragma once

#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

/// Zeroes each element with probability `ratio` and scales the others by 1 / (1 - ratio); x itself
/// when config().train is off. Throws ValueError for a ratio outside [0, 1).
[[nodiscard]] Variable dropout(const Variable& x, double ratio = 0.5);

}  // namespace functions

namespace F = functions;

}  // namespace rensa

// The ufuncs of C++'s operators, and others that are used everywhere, which array/ufuncs/ declares
// too: who includes these alone is not compiled again for a new row of ops.def.
#pragma once

#include "rensa/array/ufunc.h"

namespace rensa::xp {

extern const BinaryUfunc add, subtract, multiply, divide, remainder;
extern const UnaryUfunc negative;
extern const BinaryUfunc equal, not_equal, less, less_equal, greater, greater_equal;
extern const BinaryUfunc bitwise_and, bitwise_or, bitwise_xor, left_shift, right_shift;
extern const UnaryUfunc invert;

extern const BinaryUfunc maximum, minimum, power, logical_and, logical_or;
extern const UnaryUfunc absolute, conjugate, exp, isfinite, isnan, log, logical_not, sqrt, square;

}  // namespace rensa::xp

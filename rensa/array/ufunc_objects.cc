// The ufuncs of xp: a row of ops.def each.
#include "rensa/array/common_ufuncs.h"
#include "rensa/array/math.h"
#include "rensa/array/ufuncs/ufuncs.h"

namespace rensa {

namespace ufunc {
#define RENSA_UFUNC(name, inputs, rule, expression) extern const UfuncInfo name;
#define RENSA_INTERNAL(name, inputs, rule, expression)
#include "rensa/core/ops.def"
#undef RENSA_UFUNC
}  // namespace ufunc

namespace xp {
#define RENSA_DEFINE_1(name) constinit const UnaryUfunc name(ufunc::name);
#define RENSA_DEFINE_2(name) constinit const BinaryUfunc name(ufunc::name);
#define RENSA_DEFINE_3(name)  // a function of routines_elementwise.cc
#define RENSA_UFUNC(name, inputs, rule, expression) RENSA_DEFINE_##inputs(name)
#include "rensa/core/ops.def"
#undef RENSA_UFUNC
#undef RENSA_INTERNAL
#undef RENSA_DEFINE_1
#undef RENSA_DEFINE_2
#undef RENSA_DEFINE_3

#define RENSA_ALIAS(Class, name, row) constinit const Class name(ufunc::row);
RENSA_ALIAS(UnaryUfunc, abs, absolute)
RENSA_ALIAS(UnaryUfunc, conj, conjugate)
RENSA_ALIAS(UnaryUfunc, bitwise_not, invert)
RENSA_ALIAS(UnaryUfunc, bitwise_invert, invert)
RENSA_ALIAS(UnaryUfunc, rad2deg, degrees)
RENSA_ALIAS(UnaryUfunc, deg2rad, radians)
RENSA_ALIAS(UnaryUfunc, asin, arcsin)
RENSA_ALIAS(UnaryUfunc, acos, arccos)
RENSA_ALIAS(UnaryUfunc, atan, arctan)
RENSA_ALIAS(UnaryUfunc, asinh, arcsinh)
RENSA_ALIAS(UnaryUfunc, acosh, arccosh)
RENSA_ALIAS(UnaryUfunc, atanh, arctanh)
RENSA_ALIAS(UnaryUfunc, fix, trunc)
RENSA_ALIAS(BinaryUfunc, atan2, arctan2)
RENSA_ALIAS(BinaryUfunc, pow, power)
RENSA_ALIAS(BinaryUfunc, true_divide, divide)
RENSA_ALIAS(BinaryUfunc, mod, remainder)
RENSA_ALIAS(BinaryUfunc, bitwise_left_shift, left_shift)
RENSA_ALIAS(BinaryUfunc, bitwise_right_shift, right_shift)
#undef RENSA_ALIAS
}  // namespace xp

}  // namespace rensa

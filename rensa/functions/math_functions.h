// Arithmetic and elementary functions with gradients of any order. Operands broadcast and promote
// as arrays do; a gradient comes back in its input's shape and dtype.
#pragma once

#include <optional>

#include "rensa/autograd/variable.h"
#include "rensa/functions/reduction_functions.h"

namespace rensa {
namespace functions {

// The operators + - * / and unary - of Variable by name.
[[nodiscard]] Variable add(const Variable& a, const Variable& b);
[[nodiscard]] Variable subtract(const Variable& a, const Variable& b);
[[nodiscard]] Variable multiply(const Variable& a, const Variable& b);
[[nodiscard]] Variable divide(const Variable& a, const Variable& b);
[[nodiscard]] Variable negative(const Variable& x);

/// The sum of all of them. Throws ValueError for none.
[[nodiscard]] Variable add(const Variables& xs);

/// x to a constant power.
[[nodiscard]] Variable pow(const Variable& x, double exponent);
[[nodiscard]] Variable square(const Variable& x);  // x * x
[[nodiscard]] Variable sqrt(const Variable& x);    // the square root; NaN below 0
/// 1 / sqrt(x).
[[nodiscard]] Variable rsqrt(const Variable& x);
[[nodiscard]] Variable exp(const Variable& x);  // e to the power of x
/// 2 to the power of x.
[[nodiscard]] Variable exp2(const Variable& x);
/// exp(x) - 1, exact near 0.
[[nodiscard]] Variable expm1(const Variable& x);
[[nodiscard]] Variable log(const Variable& x);    // the natural logarithm; NaN below 0
[[nodiscard]] Variable log2(const Variable& x);   // the logarithm to base 2
[[nodiscard]] Variable log10(const Variable& x);  // the logarithm to base 10
/// log(1 + x), exact near 0.
[[nodiscard]] Variable log1p(const Variable& x);
/// log(exp(a) + exp(b)) without overflow.
[[nodiscard]] Variable logaddexp(const Variable& a, const Variable& b);
[[nodiscard]] Variable sin(const Variable& x);     // of an angle in radians
[[nodiscard]] Variable cos(const Variable& x);     // of an angle in radians
[[nodiscard]] Variable tan(const Variable& x);     // of an angle in radians
[[nodiscard]] Variable arcsin(const Variable& x);  // the angle from -pi / 2 to pi / 2 of that sine
[[nodiscard]] Variable arccos(const Variable& x);  // the angle from 0 to pi of that cosine
/// The angle from -pi / 2 to pi / 2 of that tangent.
[[nodiscard]] Variable arctan(const Variable& x);
/// The angle of the point (b, a), from -pi to pi.
[[nodiscard]] Variable arctan2(const Variable& a, const Variable& b);
[[nodiscard]] Variable sinh(const Variable& x);     // (exp(x) - exp(-x)) / 2
[[nodiscard]] Variable cosh(const Variable& x);     // (exp(x) + exp(-x)) / 2
[[nodiscard]] Variable arcsinh(const Variable& x);  // the inverse of sinh
[[nodiscard]] Variable arccosh(const Variable& x);  // the inverse of cosh; NaN below 1
[[nodiscard]] Variable arctanh(const Variable& x);  // the inverse of tanh; NaN beyond -1 and 1
/// 2 / sqrt(pi) * the integral of exp(-t * t) from 0 to x.
[[nodiscard]] Variable erf(const Variable& x);
/// |x|; the gradient at 0 is 0.
[[nodiscard]] Variable absolute(const Variable& x);

/// Elementwise; where both are equal, all of the gradient goes to `a`, as in Chainer.
[[nodiscard]] Variable maximum(const Variable& a, const Variable& b);
[[nodiscard]] Variable minimum(const Variable& a, const Variable& b);
/// x between x_min and x_max, of which one may be left out; where it is cut off the gradient is 0,
/// at the bounds themselves it is gy. Throws ValueError for no bound and for x_min > x_max.
[[nodiscard]] Variable clip(const Variable& x, std::optional<double> x_min,
                            std::optional<double> x_max);
/// C's fmod: x - fix(x / divisor) * divisor, with the sign of x.
[[nodiscard]] Variable fmod(const Variable& x, const Variable& divisor);
/// p * x + (1 - p) * y.
[[nodiscard]] Variable linear_interpolate(const Variable& p, const Variable& x, const Variable& y);

/// x * y and x + y, axis 0 of y being axis `axis` of x. Throw ShapeError where y does not fit
/// there.
[[nodiscard]] Variable scale(const Variable& x, const Variable& y, int axis = 1);
[[nodiscard]] Variable bias(const Variable& x, const Variable& y, int axis = 1);  // x + y, likewise

// Without a gradient: -1, 0 or 1; the integers below, above and towards zero.
[[nodiscard]] Variable sign(const Variable& x);
[[nodiscard]] Variable floor(const Variable& x);
[[nodiscard]] Variable ceil(const Variable& x);
[[nodiscard]] Variable fix(const Variable& x);
/// x itself.
[[nodiscard]] Variable identity(const Variable& x);

/// NumPy's matmul, of `a` and `b` with their last two axes swapped where `transa`, `transb`.
[[nodiscard]] Variable matmul(const Variable& a, const Variable& b, bool transa = false,
                              bool transb = false);

}  // namespace functions

namespace F = functions;

}  // namespace rensa

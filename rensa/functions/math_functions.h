// Arithmetic and elementary functions with gradients of any order. Operands broadcast and promote
// as arrays do; a gradient comes back in its input's shape and dtype.
#pragma once

#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

// The operators + - * / and unary - of Variable by name.
[[nodiscard]] Variable add(const Variable& a, const Variable& b);
[[nodiscard]] Variable subtract(const Variable& a, const Variable& b);
[[nodiscard]] Variable multiply(const Variable& a, const Variable& b);
[[nodiscard]] Variable divide(const Variable& a, const Variable& b);
[[nodiscard]] Variable negative(const Variable& x);

/// x to a constant power.
[[nodiscard]] Variable pow(const Variable& x, double exponent);
[[nodiscard]] Variable square(const Variable& x);
[[nodiscard]] Variable sqrt(const Variable& x);
[[nodiscard]] Variable exp(const Variable& x);
[[nodiscard]] Variable log(const Variable& x);
[[nodiscard]] Variable sin(const Variable& x);
[[nodiscard]] Variable cos(const Variable& x);
/// 2 / sqrt(pi) * the integral of exp(-t * t) from 0 to x.
[[nodiscard]] Variable erf(const Variable& x);
/// |x|; the gradient at 0 is 0.
[[nodiscard]] Variable absolute(const Variable& x);

/// Elementwise; where both are equal, all of the gradient goes to `a`, as in Chainer.
[[nodiscard]] Variable maximum(const Variable& a, const Variable& b);
[[nodiscard]] Variable minimum(const Variable& a, const Variable& b);

/// Over one axis, several, or all. Throws IndexError for an axis there is not.
[[nodiscard]] Variable sum(const Variable& x, Axes axis = {}, bool keepdims = false);
[[nodiscard]] Variable mean(const Variable& x, Axes axis = {}, bool keepdims = false);

/// NumPy's matmul, of `a` and `b` with their last two axes swapped where `transa`, `transb`.
[[nodiscard]] Variable matmul(const Variable& a, const Variable& b, bool transa = false,
                              bool transb = false);

}  // namespace functions

namespace F = functions;

}  // namespace rensa

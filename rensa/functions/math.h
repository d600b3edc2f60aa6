// Arithmetic and elementary functions with gradients of any order. Operands broadcast and promote
// as arrays do; a gradient comes back in its input's shape and dtype.
#pragma once

#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

// The operators + - * / and unary - of Variable by name.
Variable add(const Variable& a, const Variable& b);
Variable subtract(const Variable& a, const Variable& b);
Variable multiply(const Variable& a, const Variable& b);
Variable divide(const Variable& a, const Variable& b);
Variable negative(const Variable& x);

/// x to a constant power.
Variable pow(const Variable& x, double exponent);
Variable square(const Variable& x);
Variable sqrt(const Variable& x);
Variable exp(const Variable& x);
Variable log(const Variable& x);
Variable sin(const Variable& x);
Variable cos(const Variable& x);
/// |x|; the gradient at 0 is 0.
Variable absolute(const Variable& x);

/// Elementwise; where both are equal, all of the gradient goes to `a`, as in Chainer.
Variable maximum(const Variable& a, const Variable& b);
Variable minimum(const Variable& a, const Variable& b);

/// Over one axis, several, or all. Throws IndexError for an axis there is not.
Variable sum(const Variable& x, Axes axis = {}, bool keepdims = false);
Variable mean(const Variable& x, Axes axis = {}, bool keepdims = false);

/// NumPy's matmul, of `a` and `b` with their last two axes swapped where `transa`, `transb`.
Variable matmul(const Variable& a, const Variable& b, bool transa = false, bool transb = false);

}  // namespace functions

namespace F = functions;

}  // namespace rensa

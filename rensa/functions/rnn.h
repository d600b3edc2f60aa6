// Cells of recurrent networks, with gradients of any order.
#pragma once

#include <utility>

#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

/// A long short-term memory's cell: of its state `c_prev` (n, units, ...) and its input `x`
/// (m, 4 * units, ...), m <= n, the new state and the output h (m, units, ...):
///   c = tanh(a) * sigmoid(i) + sigmoid(f) * c_prev, h = sigmoid(o) * tanh(c)
/// where a, i, f, o are the elements of each four of x along axis 1. Rows of c_prev beyond m stay
/// as they are (sequences that have ended, of a batch sorted by length). One kernel, and one
/// backward where m is n. Throws ShapeError for other shapes.
[[nodiscard]] std::pair<Variable, Variable> lstm(const Variable& c_prev, const Variable& x);

}  // namespace functions

namespace F = functions;

}  // namespace rensa

// Rows of operations/pointwise/pointwise.def that are gradients, one kernel each, and functions
// that are differentiable rows, one kernel forward and one backward. The rows themselves are in
// differentiable_rows.h.
//
//   Variable silu(const Variable& x) { return differentiable(rows::silu, {x})[0]; }
#pragma once

#include <vector>

#include "rensa/autograd/function_node.h"
#include "rensa/functions/differentiable_value.h"
#include "rensa/functions/node_templates.h"
#include "rensa/operations/pointwise/pointwise.h"

namespace rensa::functions {

/// A row that is a gradient.
struct Gradient {
  const PointwiseRow& row;
  /// The same of the same inputs, made of differentiable functions.
  Variables (*composed)(const std::vector<DifferentiableValue>& inputs);
};
/// A differentiable row.
struct Differentiable {
  const PointwiseRow& row;
  const Gradient& gradient;
  Keep keep;
};

/// The row's outputs for `x`, which broadcast, and the numbers behind them. The gradient is one
/// kernel; where it is to be differentiated, what its text says as functions. Inputs that it leaves
/// out, the last ones, have none.
Variables differentiable(const Differentiable& function, const Variables& x,
                         std::vector<Scalar> numbers = {});

/// The row's outputs: one kernel unless backward is being recorded.
Variables gradients_of(const Gradient& gradient, const std::vector<DifferentiableValue>& inputs);
/// The one output of a row, of variables and numbers.
template <class... Inputs> Variable gradient_of(const Gradient& gradient, const Inputs&... inputs) {
  return gradients_of(gradient, {DifferentiableValue(inputs)...})[0];
}

}  // namespace rensa::functions

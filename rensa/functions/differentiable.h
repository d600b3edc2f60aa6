// Functions that are differentiable rows of operations/pointwise/pointwise.def: one kernel forward,
// one backward.
//
//   Variable silu(const Variable& x) { return differentiable(rows::silu, {x})[0]; }
#pragma once

#include <vector>

#include "rensa/autograd/function_node.h"
#include "rensa/functions/differentiable_value.h"
#include "rensa/functions/node_templates.h"
#include "rensa/operations/pointwise/pointwise.h"

namespace rensa::functions {

/// A differentiable row.
struct Differentiable {
  const PointwiseRow& row;
  const PointwiseRow& gradient;
  Keep keep;
  /// The gradient of the same inputs, made of differentiable functions.
  Variables (*composed)(const std::vector<DifferentiableValue>& inputs);
};

/// The row's outputs for `x`, which broadcast, and the numbers behind them. The gradient is one
/// kernel; where it is to be differentiated, what its text says as functions.
Variables differentiable(const Differentiable& function, const Variables& x,
                         std::vector<Scalar> numbers = {});

/// The gradient of either kind: one kernel unless backward is being recorded.
Variables gradient(const Differentiable& function, const std::vector<DifferentiableValue>& inputs);

namespace rows {
#define RENSA_POINTWISE(name, rule, inputs, outputs, statements)
#define RENSA_DIFFERENTIABLE(name, rule, keep, inputs, outputs, statements, given, gradients, \
                             derivative)                                                      \
  extern const Differentiable name;
#include "rensa/operations/pointwise/pointwise.def"
#undef RENSA_POINTWISE
}  // namespace rows

}  // namespace rensa::functions

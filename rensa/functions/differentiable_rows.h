// The differentiable rows and gradients of pointwise.def by name. Who includes this is compiled
// again for each new row; who needs one or two declares them.
#pragma once

#include "rensa/functions/differentiable.h"

namespace rensa::functions {

/// The gradients, by the names of what they belong to.
namespace gradients {
#define RENSA_POINTWISE(name, rule, inputs, outputs, statements)
#define RENSA_GRADIENT(name, rule, given, gradients, derivative) extern const Gradient name;
#include "rensa/operations/pointwise/pointwise.def"
#undef RENSA_POINTWISE
}  // namespace gradients

namespace rows {
#define RENSA_POINTWISE(name, rule, inputs, outputs, statements)
#define RENSA_GRADIENT(name, rule, given, gradients, derivative)
#define RENSA_DIFFERENTIABLE(name, rule, keep, inputs, outputs, statements, given, gradients, \
                             derivative)                                                      \
  extern const Differentiable name;
#include "rensa/operations/pointwise/pointwise.def"
#undef RENSA_POINTWISE
}  // namespace rows

}  // namespace rensa::functions

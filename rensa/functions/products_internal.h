// Products that only other functions ask for.
#pragma once

#include "rensa/autograd/variable.h"

namespace rensa::functions {

/// matmul of matrices whose product is the gradient with respect to `x`: where relu gave x, how it
/// is computed is chosen for the product and relu's gradient, which is taken of it next.
Variable matmul_as_gradient(const VariableNode& x, const Variable& a, const Variable& b);

}  // namespace rensa::functions

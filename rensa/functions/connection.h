// Functions with weights.
#pragma once

#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

/// y = x @ W.T + b: x (n, k), W (m, k), b (m,) or undefined, y (n, m), of one floating dtype. The
/// first `n_batch_axes` axes of x count samples and are kept, the others are flattened. Throws
/// ShapeError, DtypeError, DeviceError.
[[nodiscard]] Variable linear(const Variable& x, const Variable& W, const Variable& b = {},
                              int n_batch_axes = 1);

}  // namespace functions

namespace F = functions;

}  // namespace rensa

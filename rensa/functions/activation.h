// Activation functions, with gradients of any order.
#pragma once

#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

/// max(x, 0); NaN stays.
[[nodiscard]] Variable relu(const Variable& x);
/// 1 / (1 + exp(-x)).
[[nodiscard]] Variable sigmoid(const Variable& x);
[[nodiscard]] Variable tanh(const Variable& x);
/// exp(x) / sum(exp(x)) along `axis`.
[[nodiscard]] Variable softmax(const Variable& x, int axis = 1);
/// log softmax along `axis`: x - log(sum(exp(x))).
[[nodiscard]] Variable log_softmax(const Variable& x, int axis = 1);

}  // namespace functions

namespace F = functions;

}  // namespace rensa

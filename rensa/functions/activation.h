// Activation functions, with gradients of any order.
#pragma once

#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

/// max(x, 0); NaN stays.
Variable relu(const Variable& x);
/// 1 / (1 + exp(-x)).
Variable sigmoid(const Variable& x);
Variable tanh(const Variable& x);
/// exp(x) / sum(exp(x)) along `axis`.
Variable softmax(const Variable& x, int axis = 1);
/// log softmax along `axis`: x - log(sum(exp(x))).
Variable log_softmax(const Variable& x, int axis = 1);

}  // namespace functions

namespace F = functions;

}  // namespace rensa

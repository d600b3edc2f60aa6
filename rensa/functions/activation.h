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
/// log(1 + exp(beta * x)) / beta: relu with its corner rounded, the less the greater beta is.
[[nodiscard]] Variable softplus(const Variable& x, double beta = 1.0);
/// x where it is not negative, else slope * x.
[[nodiscard]] Variable leaky_relu(const Variable& x, double slope = 0.2);
/// x where it is not negative, else alpha * (exp(x) - 1).
[[nodiscard]] Variable elu(const Variable& x, double alpha = 1.0);
/// scale * elu(x, alpha), by whose numbers activations keep mean 0 and variance 1.
[[nodiscard]] Variable selu(const Variable& x, double alpha = 1.6732632423543772,
                            double scale = 1.0507009873554805);
/// x * (1 + erf(x / sqrt(2))) / 2: x times the normal distribution's share below x.
[[nodiscard]] Variable gelu(const Variable& x);
/// x * sigmoid(x).
[[nodiscard]] Variable silu(const Variable& x);
/// 0.2 * x + 0.5 between 0 and 1.
[[nodiscard]] Variable hard_sigmoid(const Variable& x);
/// x between 0 and z; the gradient is 0 at both.
[[nodiscard]] Variable clipped_relu(const Variable& x, double z = 20.0);
/// clipped_relu(x, 6).
[[nodiscard]] Variable relu6(const Variable& x);
/// exp(x) / sum(exp(x)) along `axis`.
[[nodiscard]] Variable softmax(const Variable& x, int axis = 1);
/// log softmax along `axis`: x - log(sum(exp(x))).
[[nodiscard]] Variable log_softmax(const Variable& x, int axis = 1);

}  // namespace functions

namespace F = functions;

}  // namespace rensa

// Activation functions, with gradients of any order.
#pragma once

#include <optional>

#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

/// max(x, 0); NaN stays.
[[nodiscard]] Variable relu(const Variable& x);
/// 1 / (1 + exp(-x)).
[[nodiscard]] Variable sigmoid(const Variable& x);
[[nodiscard]] Variable tanh(const Variable& x);  // (exp(x) - exp(-x)) / (exp(x) + exp(-x))
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
/// gelu's approximation x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2, as GPT-2 has it.
[[nodiscard]] Variable gelu_tanh(const Variable& x);
/// x * sigmoid(x).
[[nodiscard]] Variable silu(const Variable& x);
/// 0.2 * x + 0.5 between 0 and 1.
[[nodiscard]] Variable hard_sigmoid(const Variable& x);
/// x between 0 and z; the gradient is 0 at both.
[[nodiscard]] Variable clipped_relu(const Variable& x, double z = 20.0);
/// clipped_relu(x, 6).
[[nodiscard]] Variable relu6(const Variable& x);
/// x * tanh(softplus(x)) (Misra, "Mish: a self regularized non-monotonic activation function").
[[nodiscard]] Variable mish(const Variable& x);
/// x * min(max(x + 3, 0), 6) / 6 (Howard et al., "Searching for MobileNetV3").
[[nodiscard]] Variable hard_swish(const Variable& x);
/// x * sigmoid(beta * x): beta's shape is that of x's axes behind the first one, or of the first
/// few of them. Throws ShapeError with both shapes (Ramachandran et al., "Searching for activation
/// functions").
[[nodiscard]] Variable swish(const Variable& x, const Variable& beta);
/// x where it is not negative, else W * x: W's shape is that of x's axes behind the first one, or
/// of the first few of them ((channels,) for images). Throws ShapeError with both shapes (He et
/// al., "Delving deep into rectifiers").
[[nodiscard]] Variable prelu(const Variable& x, const Variable& W);

struct RreluOptions {
  std::optional<Array> r = {};  // of x's shape: in place of those drawn
  Array* return_r = nullptr;    // where those that were used go
};
/// x where it is not negative, else r * x, r drawn from [l, u) for each element; (l + u) / 2 for
/// all while config().train is off (Xu et al., "Empirical evaluation of rectified activations").
/// Throws ValueError unless 0 <= l < u < 1, ShapeError for an r of another shape than x.
[[nodiscard]] Variable rrelu(const Variable& x, double l = 1. / 8, double u = 1. / 3,
                             const RreluOptions& options = {});
/// max(x, 0) and behind it along `axis` max(-x, 0): twice as long there (Shang et al.,
/// "Understanding and improving convolutional neural networks via concatenated rectified linear
/// units"). Throws IndexError for an axis there is not.
[[nodiscard]] Variable crelu(const Variable& x, int axis = 1);
/// The first half of x along `axis` times the sigmoid of the second one: half as long there
/// (Dauphin et al., "Language modeling with gated convolutional networks"). Throws ShapeError for
/// an odd length, IndexError for an axis there is not.
[[nodiscard]] Variable glu(const Variable& x, int axis = -1);
/// The greatest of each `pool_size` neighbours along `axis`; where several are the greatest, each
/// of them has the gradient (Goodfellow et al., "Maxout networks"). Throws ValueError for a
/// pool_size below 1, ShapeError where it does not divide the axis's length, IndexError for an axis
/// there is not.
[[nodiscard]] Variable maxout(const Variable& x, int pool_size, int axis = 1);
/// exp(x) / sum(exp(x)) along `axis`.
[[nodiscard]] Variable softmax(const Variable& x, int axis = 1);
/// log softmax along `axis`: x - log(sum(exp(x))).
[[nodiscard]] Variable log_softmax(const Variable& x, int axis = 1);

}  // namespace functions

namespace F = functions;

}  // namespace rensa

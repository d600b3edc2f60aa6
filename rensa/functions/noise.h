// Functions that draw random numbers. Shapes that do not fit throw ShapeError.
#pragma once

#include <optional>

#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

/// Zeroes each element with probability `ratio` and scales the others by 1 / (1 - ratio); x itself
/// when config().train is off. Throws ValueError for a ratio outside [0, 1).
[[nodiscard]] Variable dropout(const Variable& x, double ratio = 0.5);

struct GaussianOptions {
  std::optional<Array> eps = {};  // of mean's shape: in place of those drawn
  Array* return_eps = nullptr;    // where those that were used go
};
/// mean + exp(ln_var / 2) * eps, eps drawn from the standard normal distribution for each element
/// (Kingma and Welling, "Auto-encoding variational Bayes"). Of one shape.
[[nodiscard]] Variable gaussian(const Variable& mean, const Variable& ln_var,
                                const GaussianOptions& options = {});
/// softmax((log_pi + g) / tau) along `axis`, g drawn from Gumbel's distribution: one class as far
/// as tau is small (Jang et al., "Categorical reparameterization with Gumbel-softmax"). Throws
/// ValueError for a tau that is not above 0.
[[nodiscard]] Variable gumbel_softmax(const Variable& log_pi, double tau = 0.1, int axis = 1);
/// Each element of h with probability `ratio`, else that of x; x itself when config().train is off
/// (Krueger et al., "Zoneout: regularizing RNNs by randomly preserving hidden activations"). Of one
/// shape. Throws ValueError for a ratio outside [0, 1].
[[nodiscard]] Variable zoneout(const Variable& h, const Variable& x, double ratio = 0.5);

struct SimplifiedDropconnectOptions {
  double ratio = 0.5;
  bool train = true;               // off: nothing is dropped
  std::optional<Array> mask = {};  // (n, M, N) or (M, N), what is kept: in place of one drawn
  bool use_batchwise_mask = true;  // a mask for each sample
};
/// linear(x, W, b) of x (n, ...), W (M, N) and b (M,), each weight dropped with probability `ratio`
/// and the others scaled by 1 / (1 - ratio); b may be undefined (Wan et al., "Regularization of
/// neural networks using DropConnect"). Throws ValueError for a ratio outside [0, 1).
[[nodiscard]] Variable simplified_dropconnect(const Variable& x, const Variable& W,
                                              const Variable& b = {},
                                              const SimplifiedDropconnectOptions& options = {});

}  // namespace functions

namespace F = functions;

}  // namespace rensa

// Normalizations, with gradients of any order. Statistics, and sums of backward, are float32 at
// least; an output has the dtype and, dense or channels-last, the layout of its x.
#pragma once

#include <optional>

#include "rensa/array/axis_list.h"
#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

// --- of batches ---
// gamma and beta have the shape of x's axes that are kept: with `axis`, the ones that are reduced,
// left out, those are axis 1 and as many behind it as gamma has. (n, channels, h, w) has a mean for
// each channel. Throw ShapeError with both shapes where they do not fit, IndexError and ValueError
// for an axis that there is not or twice, DtypeError for what is not floating or where gamma and
// beta differ. Of no elements come none, and running statistics stay as they are.

struct BatchNormalizationOptions {
  double eps = 2e-5;
  /// Written to, where they are given, and of gamma's shape: decay * running + (1 - decay) * found,
  /// the variance as m / (m - 1) times that of the m elements. A captured step does it again.
  std::optional<Array> running_mean = {}, running_var = {};
  double decay = 0.9;
  AxisList axis = {};
};
/// gamma * (x - mean) / sqrt(variance + eps) + beta by the mean and variance of x along `axis`
/// (Ioffe and Szegedy, "Batch normalization: accelerating deep network training by reducing
/// internal covariate shift"). Throws ValueError for one running statistic without the other.
[[nodiscard]] Variable batch_normalization(const Variable& x, const Variable& gamma,
                                           const Variable& beta,
                                           const BatchNormalizationOptions& options = {});

/// The same by a mean and a variance that are given, in gamma's shape; they have gradients.
[[nodiscard]] Variable fixed_batch_normalization(const Variable& x, const Variable& gamma,
                                                 const Variable& beta, const Variable& mean,
                                                 const Variable& var, double eps = 2e-5,
                                                 const AxisList& axis = {});

}  // namespace functions

namespace F = functions;

}  // namespace rensa

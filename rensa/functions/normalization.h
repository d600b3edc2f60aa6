// Normalizations, with gradients of any order. Statistics, and sums of backward, are float32 at
// least; an output has the dtype and, dense or channels-last, the layout of its x.
#pragma once

#include <optional>

#include "rensa/array/axis_list.h"
#include "rensa/array/communicator.h"
#include "rensa/array/index.h"
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
  double decay = 0.9;  // how much of the old averages stays
  AxisList axis = {};  // what is reduced
};
/// gamma * (x - mean) / sqrt(variance + eps) + beta by the mean and variance of x along `axis`
/// (Ioffe and Szegedy, "Batch normalization: accelerating deep network training by reducing
/// internal covariate shift"). Throws ValueError for one running statistic without the other.
[[nodiscard]] Variable batch_normalization(const Variable& x, const Variable& gamma,
                                           const Variable& beta,
                                           const BatchNormalizationOptions& options = {});

/// The same by the mean and variance of the x of all ranks, each of which calls this, and its
/// backward, at the same time: y and the gradient of the sum of all ranks' losses are those of the
/// whole batch on one. Ranks may have different numbers of samples, or none.
[[nodiscard]] Variable batch_normalization(const Communicator& communicator, const Variable& x,
                                           const Variable& gamma, const Variable& beta,
                                           const BatchNormalizationOptions& options = {});

/// The same by a mean and a variance that are given, in gamma's shape; they have gradients.
[[nodiscard]] Variable fixed_batch_normalization(const Variable& x, const Variable& gamma,
                                                 const Variable& beta, const Variable& mean,
                                                 const Variable& var, double eps = 2e-5,
                                                 const AxisList& axis = {});

struct BatchRenormalizationOptions {
  double eps = 2e-5;
  Array running_mean, running_var;  // needed; floating, C-contiguous and of gamma's shape
  double decay = 0.9;               // of the averages: how much of the old one stays
  bool update_statistics = false;   // as batch_normalization does
};
/// batch_normalization by statistics that may not leave the running ones far behind: gamma * (r *
/// x_hat + d) + beta, x_hat being x normalized by its own, with r = sigma / running_sigma, between
/// 1 / rmax and rmax, and d = (mean - running_mean) / running_sigma, between -dmax and dmax, sigma
/// = sqrt(variance + eps). r and d are constants to the gradient (Ioffe, "Batch renormalization:
/// towards reducing minibatch dependence in batch-normalized models"). Throws as
/// batch_normalization does, ValueError without running statistics, for an rmax below 1 and for a
/// negative dmax.
[[nodiscard]] Variable batch_renormalization(const Variable& x, const Variable& gamma,
                                             const Variable& beta, double rmax, double dmax,
                                             const BatchRenormalizationOptions& options);
/// fixed_batch_normalization.
[[nodiscard]] Variable fixed_batch_renormalization(const Variable& x, const Variable& gamma,
                                                   const Variable& beta, const Variable& mean,
                                                   const Variable& var, double eps = 2e-5);

// --- of samples ---

/// (x - mean) / sqrt(variance + eps) * gamma + beta over the last axes of x, whose shape gamma and
/// beta have: each row by itself (Ba et al., "Layer normalization"). Throws ShapeError with both
/// shapes, DtypeError as batch_normalization does.
[[nodiscard]] Variable layer_normalization(const Variable& x, const Variable& gamma,
                                           const Variable& beta, double eps = 1e-5);

/// x / sqrt(mean(x^2) + eps) * gamma over the last axes of x, whose shape gamma has; an undefined
/// gamma is 1 along the last axis (Zhang and Sennrich, "Root mean square layer normalization"). eps
/// left out is the distance from 1 to the next number of x's dtype, as in PyTorch. Throws as
/// layer_normalization does.
[[nodiscard]] Variable rms_norm(const Variable& x, const Variable& gamma = {},
                                std::optional<double> eps = std::nullopt);

/// (x - mean) / sqrt(variance + eps) * gamma + beta of x (n, channels, ...) by the statistics of
/// each of `groups` groups of neighbouring channels of a sample; gamma and beta are (channels,) (Wu
/// and He, "Group normalization"). Throws ValueError for groups that do not divide the channels,
/// else as batch_normalization does.
[[nodiscard]] Variable group_normalization(const Variable& x, std::int64_t groups,
                                           const Variable& gamma, const Variable& beta,
                                           double eps = 1e-5);

/// x / (norm + eps), the norm being that of the elements along `axis`, one or several. Where it is
/// 0, so is the result. Throws IndexError and ValueError for an axis that there is not or twice.
[[nodiscard]] Variable normalize(const Variable& x, double eps = 1e-5, const Axes& axis = 1);

/// x / (k + alpha * s)^beta, s the sum of the squares of n neighbouring channels (axis 1), n / 2 on
/// either side (Krizhevsky et al., "ImageNet classification with deep convolutional neural
/// networks"). Throws ShapeError for an x without channels, ValueError for n below 1.
[[nodiscard]] Variable local_response_normalization(const Variable& x, std::int64_t n = 5,
                                                    double k = 2, double alpha = 1e-4,
                                                    double beta = 0.75);

}  // namespace functions

namespace F = functions;

}  // namespace rensa

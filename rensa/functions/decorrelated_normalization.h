// Batch normalization that leaves no correlation between channels.
#pragma once

#include <optional>

#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

struct DecorrelatedBatchNormalizationOptions {
  rensa::detail::NamedOptions named = {};
  std::int64_t groups = 16;  // of channels, each of which is decorrelated on its own
  double eps = 2e-5;
  /// Moved towards the batch's, in place: (groups, channels / groups) and (groups, channels /
  /// groups, channels / groups), as decay * old + (1 - decay) * new.
  std::optional<Array> running_mean = {}, running_projection = {};
  double decay = 0.9;  // how much of the old averages stays
};
/// Huang et al., "Decorrelated batch normalization": of x (n, channels, ...) each group's channels,
/// centred, times the inverse square root of their covariance plus eps. Its gradient has none of
/// its own (NotImplementedError). A captured step with it stays eager.
///
/// Throws ShapeError for groups that do not divide the channels and other running arrays,
/// DtypeError.
[[nodiscard]] Variable decorrelated_batch_normalization(
    const Variable& x, const DecorrelatedBatchNormalizationOptions& options = {});

/// The same with a mean (groups, channels / groups) and projection (groups, channels / groups,
/// channels / groups) that are given, with gradients of any order.
[[nodiscard]] Variable fixed_decorrelated_batch_normalization(const Variable& x,
                                                              const Variable& mean,
                                                              const Variable& projection,
                                                              std::int64_t groups = 16);

}  // namespace functions

namespace F = functions;

}  // namespace rensa

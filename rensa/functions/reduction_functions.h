// Functions that reduce along axes, and running sums and products, with gradients of any order.
// `axis` is one axis, several ({0, 2}), or all when left out; with `keepdims` reduced axes stay,
// with extent 1. By keywords: sum(x, {.axis = 1, .keepdims = true}). Throw IndexError for an axis
// that there is not, ValueError for one named twice.
#pragma once

#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

/// The keywords of average.
struct AverageOptions {
  rensa::detail::NamedOptions named = {};
  Axes axis = {};         // all when left out
  Variable weights = {};  // of x's shape, or one for each place of the one axis
  bool keepdims = false;  // the reduced axes stay, of extent 1
};

/// The sum over the axes, all when left out.
[[nodiscard]] Variable sum(const Variable& x, Axes axis = {}, bool keepdims = false);
[[nodiscard]] inline Variable sum(const Variable& x, const ReduceOptions& options) {
  return sum(x, options.axis, options.keepdims);
}
/// The mean over the axes, all when left out.
[[nodiscard]] Variable mean(const Variable& x, Axes axis = {}, bool keepdims = false);
[[nodiscard]] inline Variable mean(const Variable& x, const ReduceOptions& options) {
  return mean(x, options.axis, options.keepdims);
}
/// The product; the gradient is right where elements are 0 too.
[[nodiscard]] Variable prod(const Variable& x, Axes axis = {}, bool keepdims = false);
[[nodiscard]] inline Variable prod(const Variable& x, const ReduceOptions& options) {
  return prod(x, options.axis, options.keepdims);
}
/// sum(x * weights) / sum(weights), or mean(x). Weights have x's shape or are 1-d, one for each
/// place of the one axis. Throws ShapeError for others.
[[nodiscard]] Variable average(const Variable& x, Axes axis = {}, const Variable& weights = {},
                               bool keepdims = false);
[[nodiscard]] inline Variable average(const Variable& x, const AverageOptions& options) {
  return average(x, options.axis, options.weights, options.keepdims);
}
/// The greatest (least) element; all elements that are equal to it have its gradient, as in
/// Chainer. Throws ValueError for no elements.
[[nodiscard]] Variable max(const Variable& x, Axes axis = {}, bool keepdims = false);
[[nodiscard]] inline Variable max(const Variable& x, const ReduceOptions& options) {
  return max(x, options.axis, options.keepdims);
}
/// The least element, likewise.
[[nodiscard]] Variable min(const Variable& x, Axes axis = {}, bool keepdims = false);
[[nodiscard]] inline Variable min(const Variable& x, const ReduceOptions& options) {
  return min(x, options.axis, options.keepdims);
}
/// The place (int64) of the first greatest (least) element along one axis, or in the flattened x;
/// without a gradient.
[[nodiscard]] Variable argmax(const Variable& x, Axes axis = {});
[[nodiscard]] Variable argmin(const Variable& x, Axes axis = {});
/// The mean of (x - mean(x))^2, its count less by `ddof`; and the square root of that.
[[nodiscard]] Variable var(const Variable& x, Axes axis = {}, double ddof = 0,
                           bool keepdims = false);
[[nodiscard]] inline Variable var(const Variable& x, const VarianceOptions& options) {
  return var(x, options.axis, options.ddof, options.keepdims);
}
/// The square root of var.
[[nodiscard]] Variable std(const Variable& x, Axes axis = {}, double ddof = 0,
                           bool keepdims = false);
[[nodiscard]] inline Variable std(const Variable& x, const VarianceOptions& options) {
  return std(x, options.axis, options.ddof, options.keepdims);
}
/// log(sum(exp(x))) without overflow.
[[nodiscard]] Variable logsumexp(const Variable& x, Axes axis = {}, bool keepdims = false);
[[nodiscard]] inline Variable logsumexp(const Variable& x, const ReduceOptions& options) {
  return logsumexp(x, options.axis, options.keepdims);
}
/// The running sums (products) along one axis, of the flattened x where it is left out. Gradients
/// are right where elements are 0 too.
[[nodiscard]] Variable cumsum(const Variable& x, Axes axis = {});
[[nodiscard]] Variable cumprod(const Variable& x, Axes axis = {});
/// (n, ...) -> (n,): the sum of squares of each of the batch. Throws ShapeError for a 0-d x.
[[nodiscard]] Variable batch_l2_norm_squared(const Variable& x);

}  // namespace functions

namespace F = functions;

}  // namespace rensa

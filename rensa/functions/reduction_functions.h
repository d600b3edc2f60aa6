// Functions that reduce along axes, and running sums and products, with gradients of any order.
// `axis` is one axis, several ({0, 2}), or all when left out; with `keepdims` reduced axes stay,
// with extent 1. Throw IndexError for an axis that there is not, ValueError for one named twice.
#pragma once

#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

/// The sum over the axes, all when left out.
[[nodiscard]] Variable sum(const Variable& x, Axes axis = {}, bool keepdims = false);
/// The mean over the axes, all when left out.
[[nodiscard]] Variable mean(const Variable& x, Axes axis = {}, bool keepdims = false);
/// The product; the gradient is right where elements are 0 too.
[[nodiscard]] Variable prod(const Variable& x, Axes axis = {}, bool keepdims = false);
/// sum(x * weights) / sum(weights), or mean(x). Weights have x's shape or are 1-d, one for each
/// place of the one axis. Throws ShapeError for others.
[[nodiscard]] Variable average(const Variable& x, Axes axis = {}, const Variable& weights = {},
                               bool keepdims = false);
/// The greatest (least) element; all elements that are equal to it have its gradient, as in
/// Chainer. Throws ValueError for no elements.
[[nodiscard]] Variable max(const Variable& x, Axes axis = {}, bool keepdims = false);
/// The least element, likewise.
[[nodiscard]] Variable min(const Variable& x, Axes axis = {}, bool keepdims = false);
/// The place (int64) of the first greatest (least) element along one axis, or in the flattened x;
/// without a gradient.
[[nodiscard]] Variable argmax(const Variable& x, Axes axis = {});
[[nodiscard]] Variable argmin(const Variable& x, Axes axis = {});
/// The mean of (x - mean(x))^2, its count less by `ddof`; and the square root of that.
[[nodiscard]] Variable var(const Variable& x, Axes axis = {}, double ddof = 0,
                           bool keepdims = false);
/// The square root of var.
[[nodiscard]] Variable std(const Variable& x, Axes axis = {}, double ddof = 0,
                           bool keepdims = false);
/// log(sum(exp(x))) without overflow.
[[nodiscard]] Variable logsumexp(const Variable& x, Axes axis = {}, bool keepdims = false);
/// The running sums (products) along one axis, of the flattened x where it is left out. Gradients
/// are right where elements are 0 too.
[[nodiscard]] Variable cumsum(const Variable& x, Axes axis = {});
[[nodiscard]] Variable cumprod(const Variable& x, Axes axis = {});
/// (n, ...) -> (n,): the sum of squares of each of the batch. Throws ShapeError for a 0-d x.
[[nodiscard]] Variable batch_l2_norm_squared(const Variable& x);

}  // namespace functions

namespace F = functions;

}  // namespace rensa

// Group normalization, normalization by a norm, and local response normalization.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "rensa/array/creation.h"
#include "rensa/array/internal.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/launcher.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/math_functions.h"
#include "rensa/functions/normalization.h"
#include "rensa/functions/normalization_internal.h"
#include "rensa/functions/operations/local_response/local_response.h"
#include "rensa/functions/pooling.h"

namespace rensa::functions {

namespace {

class GroupNormalization final : public FunctionNode {
 public:
  GroupNormalization(const Shape& x, std::int64_t groups, double eps)
      : FunctionNode("group_normalization"),
        fold_("group_normalization", x, {}, 1),
        groups_(groups),
        channels_(x[1]),
        eps_(eps) {}

  Arrays forward(const Arrays& inputs) override {
    retain_inputs({0, 1});
    Array x = fold_.folded(inputs[0]), y = xp::empty_like(x, {.order = 'K'});
    Array gamma = inputs[1].ascontiguous(), beta = inputs[2].ascontiguous();
    std::int64_t n = x.shape(0), share = channels_ / groups_;
    mean_ = empty_statistics(x, n * groups_);
    inv_std_ = empty_statistics(x, n * groups_);
    if (x.size() > 0) {
      Array grouped = x.reshape({n, groups_, share, x.shape(2)});
      Array means = mean_.reshape({n, groups_, 1, 1}), scales = inv_std_.reshape(means.shape());
      operations::Moments moments(name());
      moments.axes = 0b1100;
      moments.eps = eps_;
      moments.x = grouped.operand();
      moments.mean = means.operand();
      moments.inv_std = scales.operand();
      launch(moments);
    }
    operations::Normalize op = normalize_operation(name(), x);
    op.group = share;
    op.x = x.operand();
    op.mean = mean_.operand();
    op.inv_std = inv_std_.operand();
    op.gamma = gamma.operand();
    op.beta = beta.operand();
    op.out = y.operand();
    if (x.size() > 0) launch(op);
    return {fold_.unfolded(y)};
  }

  Variables backward(const Indexes& targets, const Variables& gy) override {
    Variables kept = get_retained_inputs();
    Variables all =
        config().enable_backprop ? composed(kept, gy[0]) : gradients(kept, gy[0].array(), targets);
    Variables chosen;
    for (int i : targets) chosen.push_back(all[static_cast<std::size_t>(i)]);
    return chosen;
  }

 private:
  // The sums of each channel of a sample are what the others are made of.
  Variables gradients(const Variables& kept, const Array& gy_given, const Indexes& targets) const {
    constexpr const char* kName = "group_normalization_grad";
    Array x = fold_.folded(kept[0].array()),
          gy = rensa::detail::dense_as(fold_.folded(gy_given), x);
    Array gamma = kept[1].array().ascontiguous();
    std::int64_t n = x.shape(0), share = channels_ / groups_;
    Array sum_gy = empty_statistics(x, n * channels_), sum_gyx = empty_statistics(x, n * channels_);
    sum_gy = sum_gy.reshape({n, channels_, 1}), sum_gyx = sum_gyx.reshape({n, channels_, 1});
    if (x.size() > 0) {
      operations::NormalizationSums op(kName);
      op.axes = 0b100;
      op.group = share;
      op.x = x.operand();
      op.gy = gy.operand();
      op.mean = mean_.operand();
      op.inv_std = inv_std_.operand();
      op.sum_gy = sum_gy.operand();
      op.sum_gyx = sum_gyx.operand();
      launch(op);
    } else {
      sum_gy.fill(0), sum_gyx.fill(0);
    }
    Variables all(3);
    auto of_gamma = [&](const Array& sums) {
      return constant(xp::sum(sums, {.axis = {0, 2}}).astype(gamma.dtype(), false));
    };
    all[1] = of_gamma(sum_gyx);
    all[2] = of_gamma(sum_gy);
    if (std::ranges::find(targets, 0) == targets.end()) return all;
    Array out = xp::empty_like(x, {.order = 'K'});
    Array weights = gamma.astype(sum_gy.dtype(), false).reshape({1, channels_, 1});
    auto of_groups = [&](const Array& sums) {
      return xp::sum((sums * weights).reshape({n * groups_, share}), {.axis = 1});
    };
    Array group_gy = of_groups(sum_gy), group_gyx = of_groups(sum_gyx);
    operations::Normalize op = normalize_operation(kName, x);
    op.group = share;
    op.count = static_cast<double>(share * x.shape(2));
    op.x = x.operand();
    op.gy = gy.operand();
    op.mean = mean_.operand();
    op.inv_std = inv_std_.operand();
    op.gamma = gamma.operand();
    op.sum_gy = group_gy.operand();
    op.sum_gyx = group_gyx.operand();
    op.out = out.operand();
    if (x.size() > 0) launch(op);
    all[0] = constant(fold_.unfolded(out));
    return all;
  }

  // The same, made of functions that know their gradients.
  Variables composed(const Variables& kept, const Variable& gy_given) const {
    Dtype dtype = statistics_dtype(kept[0].dtype());
    std::int64_t n = kept[0].shape(0),
                 inner = channels_ > 0 && n > 0 ? kept[0].size() / n / channels_ : 0;
    Shape groups{n, groups_, channels_ / groups_ * inner}, channels{n, channels_, inner};
    Variable x = reshape(cast(kept[0], dtype), groups);
    Variable gy = reshape(cast(gy_given, dtype), channels);
    Variable far = x - mean(x, 2, true);
    Variable inv_std = rsqrt(mean(square(far), 2, true) + eps_), x_hat = far * inv_std;
    Variable g = reshape(gy * reshape(cast(kept[1], dtype), {1, channels_, 1}), groups);
    Variable gx = inv_std * (g - (mean(g, 2, true) + x_hat * mean(g * x_hat, 2, true)));
    auto of_gamma = [&](const Variable& v) { return cast(sum(v, {0, 2}), kept[1].dtype()); };
    return {cast(reshape(gx, kept[0].shape()), kept[0].dtype()),
            of_gamma(gy * reshape(x_hat, channels)), of_gamma(gy)};
  }

  ChannelFold fold_;
  std::int64_t groups_, channels_;
  double eps_;
  Array mean_, inv_std_;
};

class NormalizeByNorm final : public FunctionNode {
 public:
  NormalizeByNorm(double eps, const Axes& axes)
      : FunctionNode("normalize"), eps_(eps), axes_(axes) {}

  Arrays forward(const Arrays& inputs) override {
    retain_inputs({0});
    const Array& x = inputs[0];
    Dtype wide = statistics_dtype(x.dtype());
    unsigned axes = axes_.mask("normalize", x.ndim());
    norm_ = rensa::detail::reduce_axes(reduction::norm, x, axes, wide);
    if (wide != x.dtype() && are_rows(x, axes)) return {rows_times(x, 1 / (norm_ + eps_))};
    return {(x.astype(wide, false) / (norm_ + eps_)).astype(x.dtype(), false)};
  }

  Variables backward(const Indexes&, const Variables& gy_given) override {
    Variable given = get_retained_inputs()[0];
    if (!config().enable_backprop && are_rows(given.array(), axes_.mask(name(), given.ndim()))) {
      return {constant(gradient_of_rows(given.array(), gy_given[0].array().ascontiguous()))};
    }
    Dtype dtype = statistics_dtype(given.dtype());
    Variable x = cast(given, dtype), gy = cast(gy_given[0], dtype);
    // A norm of 0 has no derivative: it is left out, so that nothing is divided by it.
    Variable squares = sum(square(x), axes_, true);
    Array there = squares.array() != 0;
    Variable one = constant(xp::ones({}, dtype, x.device()));
    Variable zero = constant(xp::zeros({}, dtype, x.device()));
    Variable root = sqrt(where(there, squares, one));
    Variable norm = where(there, root, zero) + eps_;
    Variable along = where(there, sum(x * gy, axes_, true) / root, zero);
    return {cast((gy * norm - along * x) / square(norm), given.dtype())};
  }

 private:
  /// Whether what is reduced together lies together, in as many elements as the kernel of
  /// rows_times takes.
  static bool are_rows(const Array& x, unsigned axes) {
    constexpr std::int64_t kMostElements = 1 << 30;
    unsigned last = 1u << x.ndim();
    std::int64_t row = 1;
    for (int i = 0; i < x.ndim(); ++i) row *= axes >> i & 1 ? x.shape(i) : 1;
    return axes != 0 && axes + (axes & -axes) == last && x.is_contiguous() && x.size() > 0 &&
           row <= kMostElements;
  }

  /// A Normalize of rows, each by its scale.
  operations::Normalize normalize_rows(const Array& x, const Array& scales,
                                       const Array& out) const {
    operations::Normalize op(name());
    op.samples = scales.size();
    op.inner = x.size() / op.samples;
    op.group = 1;
    op.x = x.operand();
    op.inv_std = scales.operand();
    op.out = out.operand();
    return op;
  }

  /// Each row times its scale in one pass, without a copy in the dtype of the scales.
  Array rows_times(const Array& x, const Array& scales) const {
    Array out = xp::empty(x.shape(), x.dtype(), x.device());
    operations::Normalize op = normalize_rows(x, scales, out);
    launch(op);
    return out;
  }

  /// In two passes: scale * (gy - scale * x * sum(x * gy) / norm), of a norm of 0 scale * gy.
  Array gradient_of_rows(const Array& x, const Array& gy) const {
    Dtype wide = norm_.dtype();
    double most =
        wide == float64 ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
    Array scales = 1 / (norm_ + eps_), inverse = xp::minimum(1 / norm_, most);
    Array sum_gy = xp::empty({norm_.size(), 1}, wide, x.device()), along = xp::empty_like(sum_gy);
    Array rows = x.reshape({norm_.size(), -1}), gy_rows = gy.reshape(rows.shape());
    operations::NormalizationSums sums(name());
    sums.axes = 0b10;
    sums.x = rows.operand();
    sums.gy = gy_rows.operand();
    sums.inv_std = inverse.operand();
    sums.sum_gy = sum_gy.operand();
    sums.sum_gyx = along.operand();
    launch(sums);
    Array gx = xp::empty(x.shape(), x.dtype(), x.device());
    operations::Normalize op = normalize_rows(x, scales, gx);
    op.gy = gy.operand();
    op.sum_gyx = along.operand();
    launch(op);
    return gx;
  }

  double eps_;
  Axes axes_;
  Array norm_;
};

class LocalResponseNormalization final : public FunctionNode {
 public:
  LocalResponseNormalization(std::int64_t half, double k, double alpha, double beta)
      : FunctionNode("local_response_normalization"),
        half_(half),
        k_(k),
        alpha_(alpha),
        beta_(beta) {}

  Arrays forward(const Arrays& inputs) override {
    retain_inputs({0});
    return {launched(inputs[0], nullptr)};
  }

  Variables backward(const Indexes&, const Variables& gy) override {
    Variable x = get_retained_inputs()[0];
    if (!config().enable_backprop && reach(x.array()) <= operations::LocalResponse::kMostHalf) {
      return {Variable(launched(x.array(), &gy[0].array()), false)};
    }
    Dtype wide = statistics_dtype(x.dtype());
    Variable values = cast(x, wide), g = cast(gy[0], wide);
    Variable scale = window_sums(square(values)) * alpha_ + k_, power = pow(scale, -beta_);
    Variable around = window_sums(g * values * power / scale);
    return {cast(g * power - values * around * (2 * alpha_ * beta_), x.dtype())};
  }

  std::optional<FunctionAttributes> attributes() const override {
    FunctionAttributes attributes;
    attributes.integers["half"] = half_;
    attributes.numbers = {{"k", k_}, {"alpha", alpha_}, {"beta", beta_}};
    return attributes;
  }

 private:
  /// `half_` as far as there are channels.
  std::int64_t reach(const Array& x) const { return std::min(half_, x.shape(1) - 1); }

  /// One kernel, over the elements as x has them in memory.
  Array launched(const Array& x, const Array* gy) const {
    rensa::detail::MemoryOrder order(x, 'K');
    Array in = order.permuted(x).ascontiguous(), given;
    Array out = xp::empty(in.shape(), x.dtype(), x.device());
    operations::LocalResponse op;
    int channels = 1;  // the axis that they are in memory
    for (int i = 0; i < order.axes().ndim(); ++i) channels = order.axes()[i] == 1 ? i : channels;
    op.outer = op.inner = 1;
    for (int i = 0; i < channels; ++i) op.outer *= in.shape(i);
    for (int i = channels + 1; i < in.ndim(); ++i) op.inner *= in.shape(i);
    op.channels = in.shape(channels);
    op.half = reach(x);
    op.k = k_, op.alpha = alpha_, op.beta = beta_;
    op.x = in.operand();
    if (gy) {
      given = order.permuted(gy->astype(x.dtype(), false)).ascontiguous();
      op.gy = given.operand();
    }
    op.out = out.operand();
    launch(op);
    return order.restored(out);
  }

  /// Sums over the channels that are near, of each.
  Variable window_sums(const Variable& x) const {
    Shape shape{x.shape(0), 1, x.shape(1), x.size() / x.shape(0) / x.shape(1)};
    std::int64_t window = 2 * half_ + 1;
    Variable means = average_pooling_2d(reshape(x, shape), {window, 1}, 1, {half_, 0});
    return reshape(means, x.shape()) * static_cast<double>(window);
  }

  std::int64_t half_;
  double k_, alpha_, beta_;
};

}  // namespace

Variable group_normalization(const Variable& x, std::int64_t groups, const Variable& gamma,
                             const Variable& beta, double eps) {
  constexpr const char* name = "group_normalization";
  check_floating(name, "x", x);
  check_floating(name, "gamma", gamma);
  if (x.ndim() < 2) {
    throw ShapeError(fmt::format("{}: x {} must be (n, channels, ...)", name, x.shape().str()));
  }
  if (gamma.shape() != Shape{x.shape(1)}) {
    throw ShapeError(fmt::format("{}: gamma {} and x {}: gamma must have x's channels, ({},)", name,
                                 gamma.shape().str(), x.shape().str(), x.shape(1)));
  }
  check_beside(name, gamma, "beta", beta);
  if (groups < 1 || x.shape(1) % groups != 0) {
    throw ValueError(fmt::format("{}: {} groups do not divide the {} channels of x {}", name,
                                 groups, x.shape(1), x.shape().str()));
  }
  return apply<GroupNormalization>({x, gamma, beta}, x.shape(), groups, eps)[0];
}

Variable normalize(const Variable& x, double eps, const Axes& axis) {
  check_floating("normalize", "x", x);
  (void)axis.mask("normalize", x.ndim());
  return apply<NormalizeByNorm>({x}, eps, axis)[0];
}

Variable local_response_normalization(const Variable& x, std::int64_t n, double k, double alpha,
                                      double beta) {
  constexpr const char* name = "local_response_normalization";
  check_floating(name, "x", x);
  if (x.ndim() < 2) {
    throw ShapeError(fmt::format("{}: x {} must be (n, channels, ...)", name, x.shape().str()));
  }
  if (n < 1) throw ValueError(fmt::format("{}: a window of {} channels", name, n));
  if (x.size() == 0) return identity(x);
  return apply<LocalResponseNormalization>({x}, n / 2, k, alpha, beta)[0];
}

}  // namespace rensa::functions

// Batch normalization, by the statistics of a batch and by given ones.
#include "rensa/functions/normalization.h"

#include <fmt/format.h>

#include <algorithm>

#include "rensa/array/creation.h"
#include "rensa/array/internal.h"
#include "rensa/array/routines.h"
#include "rensa/autograd/recomputation.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/launcher.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/math_functions.h"
#include "rensa/functions/normalization_internal.h"

namespace rensa::functions {

namespace {

/// The elements that one channel has.
std::int64_t elements_of_channel(const Array& x) { return x.shape(0) * x.shape(2); }

struct ChannelSums {
  Array gy, gyx;
};

ChannelSums channel_sums(const char* name, const Array& x, const Array& gy, const Array& mean,
                         const Array& inv_std) {
  ChannelSums sums = {empty_statistics(x, x.shape(1)), empty_statistics(x, x.shape(1))};
  if (x.size() == 0) {  // sums of nothing, and of no statistics
    sums.gy.fill(0), sums.gyx.fill(0);
    return sums;
  }
  operations::NormalizationSums op(name);
  op.axes = 0b101;
  op.x = x.operand();
  op.gy = gy.operand();
  op.mean = mean.operand();
  op.inv_std = inv_std.operand();
  op.sum_gy = channel_operand(sums.gy);
  op.sum_gyx = channel_operand(sums.gyx);
  launch(op);
  return sums;
}

class BatchNormalization final : public FunctionNode {
 public:
  BatchNormalization(ChannelFold fold, const BatchNormalizationOptions& options)
      : FunctionNode("batch_normalization"), fold_(std::move(fold)), options_(options) {}

  Arrays forward(const Arrays& inputs) override {
    retain_inputs({0, 1});
    Array x = fold_.folded(inputs[0]), gamma = inputs[1].ascontiguous(),
          beta = inputs[2].ascontiguous();
    find_statistics(x);
    Array y = xp::empty_like(x, {.order = 'K'});
    operations::Normalize op = normalize_operation(name(), x);
    op.x = x.operand();
    op.mean = mean_.operand();
    op.inv_std = inv_std_.operand();
    op.gamma = gamma.operand();
    op.beta = beta.operand();
    op.out = y.operand();
    launch(op);
    return {fold_.unfolded(y)};
  }

  Variables backward(const Indexes& targets, const Variables& gy) override {
    Variables kept = get_retained_inputs();
    if (config().enable_backprop) return composed(kept[0], kept[1], gy[0]);
    Array x = fold_.folded(kept[0].array()), gamma = kept[1].array().ascontiguous();
    Array g = rensa::detail::dense_as(fold_.folded(gy[0].array()), x);
    ChannelSums sums = channel_sums("batch_normalization_grad", x, g, mean_, inv_std_);
    Variables gx(3);
    if (std::ranges::find(targets, 0) != targets.end()) {
      Array out = xp::empty_like(x, {.order = 'K'});
      operations::Normalize op = normalize_operation("batch_normalization_grad", x);
      op.count = static_cast<double>(elements_of_channel(x));
      op.x = x.operand();
      op.gy = g.operand();
      op.mean = mean_.operand();
      op.inv_std = inv_std_.operand();
      op.gamma = gamma.operand();
      op.sum_gy = sums.gy.operand();
      op.sum_gyx = sums.gyx.operand();
      op.out = out.operand();
      launch(op);
      gx[0] = constant(fold_.unfolded(out));
    }
    gx[1] = constant(sums.gyx.reshape(gamma.shape()).astype(gamma.dtype(), false));
    gx[2] = constant(sums.gy.reshape(gamma.shape()).astype(gamma.dtype(), false));
    return select(targets, gx);
  }

 private:
  void find_statistics(const Array& x) {
    mean_ = empty_statistics(x, x.shape(1));
    inv_std_ = empty_statistics(x, x.shape(1));
    auto m = static_cast<double>(elements_of_channel(x));
    operations::Moments op(name());
    op.axes = 0b101;
    op.eps = options_.eps;
    op.x = x.operand();
    op.mean = channel_operand(mean_);
    op.inv_std = channel_operand(inv_std_);
    if (options_.running_mean && !in_recomputing()) {
      op.decay = options_.decay;
      op.adjust = m / std::max(m - 1, 1.0);
      op.running_mean = options_.running_mean->operand();
      op.running_var = options_.running_var->operand();
    }
    launch(op);
    options_.running_mean.reset(), options_.running_var.reset();
  }

  static Variables select(const Indexes& targets, const Variables& all) {
    Variables chosen;
    for (int i : targets) chosen.push_back(all[static_cast<std::size_t>(i)]);
    return chosen;
  }

  // The same as the operations above, made of functions that know their gradients.
  Variables composed(const Variable& x_given, const Variable& gamma_given,
                     const Variable& gy_given) const {
    Dtype dtype = statistics_dtype(x_given.dtype());
    Axes axes(fold_.reduced().values());
    Variable x = cast(x_given, dtype), gy = cast(gy_given, dtype);
    Variable gamma = reshape(cast(gamma_given, dtype), fold_.expanded());
    Variable far = x - mean(x, axes, true);
    Variable inv_std = rsqrt(mean(square(far), axes, true) + options_.eps);
    Variable x_hat = far * inv_std;
    Variable gbeta = sum(gy, axes, true), ggamma = sum(gy * x_hat, axes, true);
    double share = static_cast<double>(gamma.size()) / static_cast<double>(x.size());
    Variable gx = gamma * inv_std * (gy - (x_hat * ggamma + gbeta) * share);
    auto of_gamma = [&](const Variable& g) {
      return cast(reshape(g, gamma_given.shape()), gamma_given.dtype());
    };
    return {cast(gx, x_given.dtype()), of_gamma(ggamma), of_gamma(gbeta)};
  }

  ChannelFold fold_;
  BatchNormalizationOptions options_;
  Array mean_, inv_std_;
};

/// As statistics of x: C-contiguous, in their dtype.
Array as_statistic(const Array& x, const Array& values) {
  return values.astype(statistics_dtype(x.dtype()), false).ascontiguous().reshape({-1});
}

class FixedBatchNormalization final : public FunctionNode {
 public:
  FixedBatchNormalization(ChannelFold fold, double eps)
      : FunctionNode("fixed_batch_normalization"), fold_(std::move(fold)), eps_(eps) {}

  Arrays forward(const Arrays& inputs) override {
    retain_inputs({0, 1, 3, 4});
    Array x = fold_.folded(inputs[0]), y = xp::empty_like(x, {.order = 'K'});
    Array gamma = inputs[1].ascontiguous(), beta = inputs[2].ascontiguous();
    Array mean = as_statistic(x, inputs[3]), var = as_statistic(x, inputs[4]);
    operations::Normalize op = normalize_operation(name(), x);
    op.of_variance = true;
    op.eps = eps_;
    op.x = x.operand();
    op.mean = mean.operand();
    op.inv_std = var.operand();
    op.gamma = gamma.operand();
    op.beta = beta.operand();
    op.out = y.operand();
    launch(op);
    return {fold_.unfolded(y)};
  }

  Variables backward(const Indexes& targets, const Variables& gy) override {
    Variables kept = get_retained_inputs();
    Variables all = config().enable_backprop ? composed(kept, gy[0])
                                             : gradients(kept, gy[0].array(), targets[0] == 0);
    Variables chosen;
    for (int i : targets) chosen.push_back(all[static_cast<std::size_t>(i)]);
    return chosen;
  }
  std::optional<FunctionAttributes> attributes() const override {
    const Shape& reduced = fold_.reduced().values();
    return FunctionAttributes{.numbers = {{"eps", eps_}}, .lists = {{"reduced", reduced}}};
  }

 private:
  Variables gradients(const Variables& kept, const Array& gy_given, bool of_x) const {
    constexpr const char* kName = "fixed_batch_normalization_grad";
    Array x = fold_.folded(kept[0].array()),
          gy = rensa::detail::dense_as(fold_.folded(gy_given), x);
    Array given = kept[1].array(), gamma = as_statistic(x, given);
    Array mean = as_statistic(x, kept[2].array()), var = as_statistic(x, kept[3].array());
    Array inv_var = 1.0 / (var + eps_), inv_std = xp::sqrt(inv_var);
    Variables all(5);
    if (of_x) {
      Array gx = xp::empty_like(x, {.order = 'K'});
      operations::Normalize op = normalize_operation(kName, gy);
      op.x = gy.operand();
      op.inv_std = inv_std.operand();
      op.gamma = gamma.operand();
      op.out = gx.operand();
      launch(op);
      all[0] = constant(fold_.unfolded(gx));
    }
    ChannelSums sums = channel_sums(kName, x, gy, mean, inv_std);
    auto put = [&](std::size_t k, const Array& g) {
      all[k] = constant(g.reshape(given.shape()).astype(given.dtype(), false));
    };
    put(1, sums.gyx);
    put(2, sums.gy);
    put(3, -(gamma * inv_std * sums.gy));
    put(4, gamma * inv_var * sums.gyx * -0.5);
    return all;
  }

  // The same, made of functions that know their gradients.
  Variables composed(const Variables& kept, const Variable& gy_given) const {
    Dtype dtype = statistics_dtype(kept[0].dtype());
    Axes axes(fold_.reduced().values());
    auto beside = [&](const Variable& v) { return reshape(cast(v, dtype), fold_.expanded()); };
    Variable x = cast(kept[0], dtype), gy = cast(gy_given, dtype);
    Variable gamma = beside(kept[1]), inv_std = rsqrt(beside(kept[3]) + eps_);
    Variable x_hat = (x - beside(kept[2])) * inv_std, scale = gamma * inv_std;
    Variable gbeta = sum(gy, axes, true), ggamma = sum(gy * x_hat, axes, true);
    auto of_gamma = [&](const Variable& g) {
      return cast(reshape(g, kept[1].shape()), kept[1].dtype());
    };
    return {cast(scale * gy, kept[0].dtype()), of_gamma(ggamma), of_gamma(gbeta),
            of_gamma(-(scale * gbeta)), of_gamma(scale * inv_std * ggamma * -0.5)};
  }

  ChannelFold fold_;
  double eps_;
};

}  // namespace

Variable batch_normalization(const Variable& x, const Variable& gamma, const Variable& beta,
                             const BatchNormalizationOptions& options) {
  constexpr const char* name = "batch_normalization";
  ChannelFold fold = checked_fold(name, x, gamma, options.axis);
  check_beside(name, gamma, "beta", beta);
  check_running(name, gamma, options);
  return apply<BatchNormalization>({x, gamma, beta}, std::move(fold), options)[0];
}

Variable batch_renormalization(const Variable& x, const Variable& gamma, const Variable& beta,
                               double rmax, double dmax,
                               const BatchRenormalizationOptions& options) {
  constexpr const char* name = "batch_renormalization";
  ChannelFold fold = checked_fold(name, x, gamma, {});
  check_beside(name, gamma, "beta", beta);
  if (!options.running_mean.defined() || !options.running_var.defined()) {
    throw ValueError(fmt::format("{}: running_mean and running_var are needed", name));
  }
  check_running(name, gamma, "running_mean", options.running_mean);
  check_running(name, gamma, "running_var", options.running_var);
  if (!(rmax >= 1) || !(dmax >= 0)) {
    throw ValueError(
        fmt::format("{}: rmax {} and dmax {}, of which the first is at least 1 and "
                    "the other at least 0",
                    name, rmax, dmax));
  }
  BatchNormalizationOptions plain = {.eps = options.eps, .decay = options.decay};
  if (options.update_statistics) {
    plain.running_mean = options.running_mean, plain.running_var = options.running_var;
  }
  if (x.size() == 0) return batch_normalization(x, gamma, beta, plain);
  Array folded = fold.folded(x.array());
  Array mean = empty_statistics(folded, folded.shape(1));
  Array inv_std = empty_statistics(folded, folded.shape(1));
  operations::Moments op(name);
  op.axes = 0b101;
  op.eps = options.eps;
  op.x = folded.operand();
  op.mean = channel_operand(mean);
  op.inv_std = channel_operand(inv_std);
  launch(op);
  Array running_sigma = xp::sqrt(as_statistic(folded, options.running_var) + options.eps);
  Array r =
      autograd::noted([&] { return xp::clip(1.0 / (inv_std * running_sigma), 1 / rmax, rmax); });
  Array d = autograd::noted([&] {
    Array far = mean - as_statistic(folded, options.running_mean);
    return xp::clip(far / running_sigma, -dmax, dmax);
  });
  auto beside = [&](const Array& v) {
    return constant(v.reshape(gamma.shape()).astype(gamma.dtype(), false));
  };
  return batch_normalization(x, gamma * beside(r), beta + gamma * beside(d), plain);
}

Variable fixed_batch_renormalization(const Variable& x, const Variable& gamma, const Variable& beta,
                                     const Variable& mean, const Variable& var, double eps) {
  return fixed_batch_normalization(x, gamma, beta, mean, var, eps);
}

Variable fixed_batch_normalization(const Variable& x, const Variable& gamma, const Variable& beta,
                                   const Variable& mean, const Variable& var, double eps,
                                   const AxisList& axis) {
  constexpr const char* name = "fixed_batch_normalization";
  ChannelFold fold = checked_fold(name, x, gamma, axis);
  check_beside(name, gamma, "beta", beta);
  check_beside(name, gamma, "mean", mean);
  check_beside(name, gamma, "var", var);
  return apply<FixedBatchNormalization>({x, gamma, beta, mean, var}, std::move(fold), eps)[0];
}

}  // namespace rensa::functions

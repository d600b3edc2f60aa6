// Layer and RMS normalization: one node, with a mean and without.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "rensa/array/creation.h"
#include "rensa/autograd/autocast.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/launcher.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/math_functions.h"
#include "rensa/functions/normalization.h"
#include "rensa/functions/normalization_internal.h"
#include "rensa/functions/operations/row_normalization/row_normalization.h"

namespace rensa::functions {

namespace {

/// Inputs x, gamma (perhaps) and beta (where there is a mean).
class RowsNode final : public FunctionNode {
 public:
  RowsNode(const char* name, bool centered, std::int64_t columns, double eps)
      : FunctionNode(name), centered_(centered), columns_(columns), eps_(eps) {}

  Arrays forward(const Arrays& inputs) override {
    Indexes kept{0};
    if (inputs.size() > 1) kept.push_back(1);
    retain_inputs(kept);
    Array x = rows_of(inputs[0]), y = xp::empty(x.shape(), x.dtype(), x.device());
    inv_std_ = empty_statistics(x, x.shape(0));
    Array gamma, beta;
    operations::RowNormalization op(name());
    op.eps = eps_;
    op.x = x.operand();
    if (inputs.size() > 1) op.gamma = (gamma = inputs[1].ascontiguous()).operand();
    if (inputs.size() > 2) op.beta = (beta = inputs[2].ascontiguous()).operand();
    op.y = y.operand();
    if (centered_) op.mean = (mean_ = empty_statistics(x, x.shape(0))).operand();
    op.inv_std = inv_std_.operand();
    if (x.size() > 0) launch(op);
    return {y.reshape(inputs[0].shape())};
  }

  Variables backward(const Indexes& targets, const Variables& gy) override {
    Variables kept = get_retained_inputs();
    Variables all =
        config().enable_backprop ? composed(kept, gy[0]) : gradients(kept, gy[0].array(), targets);
    Variables chosen;
    for (int i : targets) chosen.push_back(all[static_cast<std::size_t>(i)]);
    return chosen;
  }
  std::optional<FunctionAttributes> attributes() const override {
    return FunctionAttributes{.numbers = {{"eps", eps_}}};
  }

 private:
  Array rows_of(const Array& x) const {
    return x.ascontiguous().reshape({columns_ == 0 ? 0 : x.size() / columns_, columns_});
  }

  Variables gradients(const Variables& kept, const Array& gy_given, const Indexes& targets) const {
    Array x = rows_of(kept[0].array()), gy = rows_of(gy_given);
    Variables all(3);
    if (std::ranges::find(targets, 0) != targets.end()) {
      Array gx = xp::empty(x.shape(), x.dtype(), x.device()), gamma;
      operations::RowNormalizationGrad op(name());
      op.x = x.operand();
      op.gy = gy.operand();
      if (centered_) op.mean = mean_.operand();
      op.inv_std = inv_std_.operand();
      if (kept.size() > 1) op.gamma = (gamma = kept[1].array().ascontiguous()).operand();
      op.gx = gx.operand();
      if (x.size() > 0) launch(op);
      all[0] = constant(gx.reshape(kept[0].shape()));
    }
    if (std::ranges::any_of(targets, [](int i) { return i > 0; })) {
      Array sum_gy = empty_statistics(x, columns_), sum_gyx = empty_statistics(x, columns_);
      operations::NormalizationSums op(name());
      op.axes = 0b1;
      op.by_row = true;
      op.x = x.operand();
      op.gy = gy.operand();
      if (centered_) op.mean = mean_.operand();
      op.inv_std = inv_std_.operand();
      Array outputs[] = {sum_gy.reshape({1, columns_}), sum_gyx.reshape({1, columns_})};
      op.sum_gy = outputs[0].operand();
      op.sum_gyx = outputs[1].operand();
      if (x.size() > 0) launch(op);
      else sum_gy.fill(0), sum_gyx.fill(0);
      auto of_gamma = [&](const Array& g) {
        return constant(g.reshape(kept[1].shape()).astype(kept[1].dtype(), false));
      };
      all[1] = of_gamma(sum_gyx);
      all[2] = of_gamma(sum_gy);
    }
    return all;
  }

  // The same, made of functions that know their gradients.
  Variables composed(const Variables& kept, const Variable& gy_given) const {
    Dtype dtype = statistics_dtype(kept[0].dtype());
    Shape shape = rows_of(kept[0].array()).shape();
    Variable x = reshape(cast(kept[0], dtype), shape), gy = reshape(cast(gy_given, dtype), shape);
    Variable far = centered_ ? x - mean(x, 1, true) : x;
    Variable inv_std = rsqrt(mean(square(far), 1, true) + eps_), x_hat = far * inv_std;
    Variable g = gy;
    if (kept.size() > 1) g = g * reshape(cast(kept[1], dtype), {1, columns_});
    Variable share = x_hat * mean(g * x_hat, 1, true);
    if (centered_) share = share + mean(g, 1, true);
    Variables all{cast(reshape(inv_std * (g - share), kept[0].shape()), kept[0].dtype()), {}, {}};
    if (kept.size() == 1) return all;
    auto of_gamma = [&](const Variable& v) {
      return cast(reshape(v, kept[1].shape()), kept[1].dtype());
    };
    all[1] = of_gamma(sum(gy * x_hat, 0));
    all[2] = of_gamma(sum(gy, 0));
    return all;
  }

  bool centered_;
  std::int64_t columns_;
  double eps_;
  Array mean_, inv_std_;
};

/// The elements of a row, whose shape gamma has.
std::int64_t checked_columns(const char* function, const Variable& x, const Variable& gamma) {
  check_floating(function, "x", x);
  check_floating(function, "gamma", gamma);
  int behind = x.ndim() - gamma.ndim();
  bool fits = gamma.ndim() > 0 && behind >= 0;
  for (int i = 0; fits && i < gamma.ndim(); ++i) fits = gamma.shape(i) == x.shape(behind + i);
  if (fits) return gamma.size();
  throw ShapeError(fmt::format("{}: gamma {} and x {}: gamma must have the shape of x's last axes",
                               function, gamma.shape().str(), x.shape().str()));
}

double epsilon_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::float16: return 0x1p-10;
    case Dtype::bfloat16: return 0x1p-7;
    case Dtype::float32: return std::numeric_limits<float>::epsilon();
    default: return std::numeric_limits<double>::epsilon();
  }
}

}  // namespace

Variable layer_normalization(const Variable& x, const Variable& gamma, const Variable& beta,
                             double eps) {
  constexpr const char* name = "layer_normalization";
  std::int64_t columns = checked_columns(name, x, gamma);
  check_beside(name, gamma, "beta", beta);
  return apply<RowsNode>({x, gamma, beta}, name, true, columns, eps)[0];
}

Variable rms_norm(const Variable& given, const Variable& gamma, std::optional<double> eps) {
  constexpr const char* name = "rms_norm";
  Variable x = autograd::autocast(name, {given})[0];
  double epsilon = eps ? *eps : epsilon_of(x.dtype());
  if (gamma.defined()) {
    std::int64_t columns = checked_columns(name, x, gamma);
    return apply<RowsNode>({x, gamma}, name, false, columns, epsilon)[0];
  }
  check_floating(name, "x", x);
  if (x.ndim() == 0) throw ShapeError(fmt::format("{}: x has no axis", name));
  return apply<RowsNode>({x}, name, false, x.shape(-1), epsilon)[0];
}

}  // namespace rensa::functions

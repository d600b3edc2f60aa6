// Losses of regression, likelihoods, distances and covariances, and what all losses share.
#include "rensa/functions/loss.h"

#include <fmt/format.h>

#include "rensa/array/routines.h"
#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"
#include "rensa/functions/activation.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/differentiable_rows.h"
#include "rensa/functions/loss_internal.h"
#include "rensa/functions/math_functions.h"

namespace rensa::functions {

// --- what losses share ---

void check_one_shape(const char* function, const char* name_of_a, const Variable& a,
                     const char* name_of_b, const Variable& b) {
  if (a.shape() == b.shape()) return;
  throw ShapeError(fmt::format("{}: {} {} and {} {} must have one shape", function, name_of_a,
                               a.array().view().describe(), name_of_b,
                               b.array().view().describe()));
}

namespace {

[[noreturn]] void throw_unknown(const char* function, const char* option, std::string_view word,
                                const char* words) {
  throw ValueError(
      fmt::format("{}: {} \"{}\", which is none of {}", function, option, word, words));
}

/// Throws ShapeError unless x is (n, k).
void check_rows(const char* function, const Variable& x) {
  if (x.ndim() == 2) return;
  throw ShapeError(fmt::format("{}: {} must be (n, k)", function, x.array().view().describe()));
}

void check_margin(const char* function, double margin) {
  if (!(margin > 0)) throw ValueError(fmt::format("{}: a margin of {}", function, margin));
}

/// Throws ShapeError unless y is (n,) of x's n rows.
void check_label_of_rows(const char* function, const Variable& x, const Variable& y) {
  if (y.ndim() == 1 && y.shape(0) == x.shape(0)) return;
  throw ShapeError(fmt::format("{}: x0 {} and y {}: y must be (n,) of n rows", function,
                               x.array().view().describe(), y.array().view().describe()));
}

}  // namespace

Variable reduced(const char* function, const Variable& losses, std::string_view reduce) {
  if (reduce == "sum") return sum(losses);
  if (reduce == "mean") return mean(losses);
  if (reduce == "no") return losses;
  throw_unknown(function, "reduce", reduce, "\"sum\", \"mean\", \"no\"");
}

bool is_mean(const char* function, std::string_view reduce) {
  if (reduce != "mean" && reduce != "no")
    throw_unknown(function, "reduce", reduce, "\"mean\", \"no\"");
  return reduce == "mean";
}

namespace {

/// The sum of all in a wider dtype, which none of them is stored in on the way, nor is its
/// gradient.
class WideSum final : public FunctionNode {
 public:
  explicit WideSum(Dtype wide) : FunctionNode("sum"), wide_(wide) {}

  Arrays forward(const Arrays& x) override { return {xp::sum(x[0], {.dtype = wide_})}; }
  Variables backward(const Indexes&, const Variables& gy) override {
    const VariableNode& x = *inputs()[0];
    return {broadcast_to(cast(gy[0], x.dtype), x.shape)};
  }

 private:
  Dtype wide_;
};

Variable wide_sum(const Variable& losses) {
  Dtype wide = promote_types(losses.dtype(), float32);
  return wide == losses.dtype() ? sum(losses) : apply<WideSum>({losses}, wide)[0];
}

}  // namespace

Variable sum_over(const Variable& losses, double count) {
  return cast(wide_sum(losses) / count, losses.dtype());
}

Variable sum_over(const Variable& losses, const Array& count) {
  Variable total = wide_sum(losses);
  return cast(total / constant(count.astype(total.dtype(), false)), losses.dtype());
}

Variable constant_like(const Variable& x, const Array& values) {
  return constant(values.astype(x.dtype(), false));
}

// --- regression ---

Variable squared_error(const Variable& x0, const Variable& x1) {
  check_one_shape("squared_error", "x0", x0, "x1", x1);
  return differentiable(rows::squared_error, {x0, x1})[0];
}

Variable squared_difference(const Variable& x1, const Variable& x2) {
  return squared_error(x1, x2);
}

Variable absolute_error(const Variable& x0, const Variable& x1) {
  check_one_shape("absolute_error", "x0", x0, "x1", x1);
  return differentiable(rows::absolute_error, {x0, x1})[0];
}

Variable mean_squared_error(const Variable& x0, const Variable& x1) {
  check_one_shape("mean_squared_error", "x0", x0, "x1", x1);
  return mean(squared_error(x0, x1));
}

Variable mean_absolute_error(const Variable& x0, const Variable& x1) {
  check_one_shape("mean_absolute_error", "x0", x0, "x1", x1);
  return mean(absolute_error(x0, x1));
}

Variable huber_loss(const Variable& x, const Variable& t, double delta, std::string_view reduce) {
  check_one_shape("huber_loss", "x", x, "t", t);
  if (!(delta >= 0)) throw ValueError(fmt::format("huber_loss: a delta of {}", delta));
  bool along = reduce == "sum_along_second_axis";
  if (!along && reduce != "no") {
    throw_unknown("huber_loss", "reduce", reduce, "\"sum_along_second_axis\", \"no\"");
  }
  Variable losses = differentiable(rows::huber_loss, {x, t}, {delta})[0];
  return along ? sum(losses, 1) : losses;
}

// --- likelihoods ---

Variable bernoulli_nll(const Variable& x, const Variable& y, std::string_view reduce) {
  check_one_shape("bernoulli_nll", "x", x, "y", y);
  return reduced("bernoulli_nll", differentiable(rows::bernoulli_nll, {x, y})[0], reduce);
}

Variable gaussian_nll(const Variable& x, const Variable& mean, const Variable& ln_var,
                      std::string_view reduce) {
  check_one_shape("gaussian_nll", "x", x, "mean", mean);
  check_one_shape("gaussian_nll", "x", x, "ln_var", ln_var);
  return reduced("gaussian_nll", differentiable(rows::gaussian_nll, {x, mean, ln_var})[0], reduce);
}

Variable gaussian_kl_divergence(const Variable& mean, const Variable& ln_var,
                                std::string_view reduce) {
  check_one_shape("gaussian_kl_divergence", "mean", mean, "ln_var", ln_var);
  return reduced("gaussian_kl_divergence",
                 differentiable(rows::gaussian_kl_divergence, {mean, ln_var})[0], reduce);
}

Variable kl_div(const Variable& given, const Variable& t, std::string_view reduce) {
  LossInputs in("kl_div", {given});
  const Variable& x = in.x[0];
  check_one_shape("kl_div", "x", x, "t", t);
  Variable losses = differentiable(rows::kl_div, {x, constant_like(x, t.array())})[0];
  if (reduce == "batchmean" && x.ndim() > 0) {
    return sum_over(losses, static_cast<double>(x.shape(0)));
  }
  return reduced("kl_div", losses, reduce);
}

// --- distances ---

Variable contrastive(const Variable& x0, const Variable& x1, const Variable& y, double margin,
                     std::string_view reduce) {
  check_margin("contrastive", margin);
  check_one_shape("contrastive", "x0", x0, "x1", x1);
  check_rows("contrastive", x0);
  check_label_of_rows("contrastive", x0, y);
  is_mean("contrastive", reduce);
  Variable square = sum(squared_error(x0, x1), 1);
  Variable alike = constant_like(square, y.array());
  return reduced("contrastive", differentiable(rows::contrastive, {square, alike}, {margin})[0],
                 reduce);
}

Variable triplet(const Variable& anchor, const Variable& positive, const Variable& negative,
                 double margin, std::string_view reduce) {
  check_margin("triplet", margin);
  check_one_shape("triplet", "anchor", anchor, "positive", positive);
  check_one_shape("triplet", "anchor", anchor, "negative", negative);
  check_rows("triplet", anchor);
  is_mean("triplet", reduce);
  Variable difference = differentiable(rows::triplet, {anchor, positive, negative})[0];
  return reduced("triplet", relu(sum(difference, 1) + margin), reduce);
}

Variable cosine_similarity(const Variable& given0, const Variable& given1, int axis, double eps) {
  LossInputs in("cosine_similarity", {given0, given1});
  const Variable &x0 = in.x[0], &x1 = in.x[1];
  check_one_shape("cosine_similarity", "x0", x0, "x1", x1);
  Dtype wide = promote_types(promote_types(x0.dtype(), x1.dtype()), float32);
  auto length = [&](const Variable& x) {
    return sqrt(clip(cast(sum(square(x), axis), wide), eps * eps, std::nullopt));
  };
  Variable product = sum(x0 * x1, axis);
  return cast(cast(product, wide) / (length(x0) * length(x1)), product.dtype());
}

Variable cosine_embedding_loss(const Variable& x0, const Variable& x1, const Variable& y,
                               double margin, std::string_view reduce) {
  check_one_shape("cosine_embedding_loss", "x0", x0, "x1", x1);
  check_rows("cosine_embedding_loss", x0);
  check_label_of_rows("cosine_embedding_loss", x0, y);
  Variable cosine = cosine_similarity(x0, x1);
  return reduced("cosine_embedding_loss", where(y > 0, 1 - cosine, relu(cosine - margin)), reduce);
}

// --- covariances ---

namespace {

Variable centered(const Variable& x) { return x - mean(x, 0, true); }

Variable half_squared_sum(const char* function, const Variable& covariance,
                          std::string_view reduce) {
  if (reduce == "no") return covariance;
  if (reduce == "half_squared_sum") return sum(square(covariance)) * 0.5;
  throw_unknown(function, "reduce", reduce, "\"half_squared_sum\", \"no\"");
}

}  // namespace

Variable decov(const Variable& given, std::string_view reduce) {
  LossInputs in("decov", {given});
  const Variable& h = in.x[0];
  check_rows("decov", h);
  Variable c = centered(h);
  Variable covariance = matmul(c, c, true) / static_cast<double>(h.shape(0));
  Array diagonal = xp::eye(h.shape(1), {.dtype = bool_, .device = h.device()});
  Variable zero = constant(xp::zeros({}, h.dtype(), h.device()));
  return half_squared_sum("decov", where(diagonal, zero, covariance), reduce);
}

Variable cross_covariance(const Variable& y_given, const Variable& z_given,
                          std::string_view reduce) {
  LossInputs in("cross_covariance", {y_given, z_given});
  const Variable &y = in.x[0], &z = in.x[1];
  check_rows("cross_covariance", y);
  check_rows("cross_covariance", z);
  if (y.shape(0) != z.shape(0)) {
    throw ShapeError(fmt::format("cross_covariance: y {} and z {} must have as many rows",
                                 y.array().view().describe(), z.array().view().describe()));
  }
  Variable covariance = matmul(centered(y), centered(z), true) / static_cast<double>(y.shape(0));
  return half_squared_sum("cross_covariance", covariance, reduce);
}

}  // namespace rensa::functions

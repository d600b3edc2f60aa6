// Decorrelated batch normalization: a product with the inverse square root of a covariance.
#include "rensa/functions/decorrelated_normalization.h"

#include <fmt/format.h>

#include <algorithm>

#include "rensa/array/linalg.h"
#include "rensa/autograd/autocast.h"
#include "rensa/autograd/function_node.h"
#include "rensa/autograd/recomputation.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/math_functions.h"
#include "rensa/functions/reduction_functions.h"

namespace rensa::functions {

namespace {

Array flipped(const Array& matrices) { return matrices.transpose({0, 2, 1}); }

/// Of symmetric positive definite matrices (n, k, k). Of eigenvalues s^2 the derivative is, in
/// their vectors' coordinates, that of the matrix times -1 / (s_i s_j (s_i + s_j)): no difference
/// of eigenvalues is divided by.
class InverseSquareRoot final : public FunctionNode {
 public:
  InverseSquareRoot() : FunctionNode("decorrelated_batch_normalization") {}

  Arrays forward(const Arrays& inputs) override {
    auto [values, vectors] = xp::linalg::eigh(inputs[0]);
    vectors_ = vectors;
    roots_ = xp::expand_dims(xp::sqrt(values), 1);
    return {xp::matmul(vectors_ / roots_, flipped(vectors_))};
  }
  Variables backward(const Indexes&, const Variables& gy) override {
    if (config().enable_backprop) {
      throw NotImplementedError(
          "decorrelated_batch_normalization: its gradient has no gradient; a loss of gradients "
          "needs another normalization");
    }
    const Array& g = gy[0].array();
    Array inside = xp::matmul(flipped(vectors_), xp::matmul((g + flipped(g)) * 0.5, vectors_));
    Array other = flipped(roots_);
    inside = -inside / (roots_ * other * (roots_ + other));
    return {constant(xp::matmul(vectors_, xp::matmul(inside, flipped(vectors_))))};
  }

 private:
  Array vectors_, roots_;  // in columns; (n, 1, k)
};

void check(const char* name, const Variable& x, std::int64_t groups) {
  if (x.ndim() < 2 || groups < 1 || x.shape(1) % groups != 0) {
    throw ShapeError(
        fmt::format("{}: x {} and {} groups, which have to divide the channels, x's second axis",
                    name, x.array().view().describe(), groups));
  }
  if (dtype_kind(x.dtype()) == 'f') return;
  throw DtypeError(fmt::format("{}: x {} must be floating; cast with astype", name,
                               x.array().view().describe()));
}

void check_beside(const char* name, const Variable& x, const char* what, const Array& a,
                  const Shape& shape) {
  if (a.shape() != shape) {
    throw ShapeError(fmt::format("{}: x {} and {} {}, which has to be {}", name,
                                 x.array().view().describe(), what, a.view().describe(),
                                 shape.str()));
  }
  if (dtype_kind(a.dtype()) != 'f') {
    throw DtypeError(fmt::format("{}: {} {} must be floating", name, what, a.view().describe()));
  }
  check_same_device(name, x.array(), a);
}

/// x's channels as (groups, channels of each, the rest), and back.
Variable grouped(const Variable& x, std::int64_t groups) {
  Variable front = swapaxes(x, 0, 1);
  std::int64_t each = x.shape(1) / groups;
  return reshape(front, {groups, each, each == 0 ? 0 : x.size() / x.shape(1)});
}
Variable ungrouped(const Variable& y, const Variable& x) {
  Shape front = x.shape();
  std::swap(front[0], front[1]);
  return swapaxes(reshape(y, front), 0, 1);
}

/// What eigenvalues are found in.
Dtype wide(Dtype dtype) { return dtype == float64 ? float64 : float32; }

void move(const Array& running, const Array& found, double decay) {
  running.assign(running * decay + found.astype(running.dtype(), false) * (1 - decay));
}

}  // namespace

Variable decorrelated_batch_normalization(const Variable& given,
                                          const DecorrelatedBatchNormalizationOptions& options) {
  constexpr const char* name = "decorrelated_batch_normalization";
  Variable x = autograd::autocast(name, {given})[0];
  Autocast off(none);
  check(name, x, options.groups);
  std::int64_t groups = options.groups, each = x.shape(1) / groups;
  if (options.running_mean) {
    check_beside(name, x, "running_mean", *options.running_mean, {groups, each});
  }
  if (options.running_projection) {
    check_beside(name, x, "running_projection", *options.running_projection, {groups, each, each});
  }
  if (x.size() == 0) return x;
  Variable rows = grouped(cast(x, wide(x.dtype())), groups);
  auto m = static_cast<double>(rows.shape(2));
  Variable middle = mean(rows, 2, true), centred = rows - middle;
  Variable covariance = matmul(centred, centred, false, true) / m +
                        constant(xp::eye(each, rows.dtype(), x.device()) * options.eps);
  Variable projection = apply<InverseSquareRoot>({covariance})[0];
  if (!in_recomputing()) {
    if (options.running_mean) {
      move(*options.running_mean, middle.array().reshape({groups, each}), options.decay);
    }
    if (options.running_projection) {
      move(*options.running_projection, projection.array() * (m / std::max(m - 1, 1.0)),
           options.decay);
    }
  }
  return ungrouped(cast(matmul(projection, centred), x.dtype()), x);
}

Variable fixed_decorrelated_batch_normalization(const Variable& given, const Variable& mean,
                                                const Variable& projection, std::int64_t groups) {
  constexpr const char* name = "fixed_decorrelated_batch_normalization";
  Variable x = autograd::autocast(name, {given})[0];
  Autocast off(none);
  check(name, x, groups);
  std::int64_t each = x.shape(1) / groups;
  check_beside(name, x, "mean", mean.array(), {groups, each});
  check_beside(name, x, "projection", projection.array(), {groups, each, each});
  if (x.size() == 0) return x;
  auto as_x = [&](const Variable& v) { return cast(v, x.dtype()); };
  Variable centred = grouped(x, groups) - reshape(as_x(mean), {groups, each, 1});
  return ungrouped(matmul(as_x(projection), centred), x);
}

}  // namespace rensa::functions

// A loss over the instances of images.
#include <fmt/format.h>

#include "rensa/array/creation.h"
#include "rensa/core/error.h"
#include "rensa/functions/activation.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/loss.h"
#include "rensa/functions/loss_internal.h"
#include "rensa/functions/math_functions.h"

namespace rensa::functions {

namespace {

constexpr const char* kName = "discriminative_margin_based_clustering_loss";

/// Over those axes; the gradient of a norm of 0 is 0.
Variable norm_of(const Variable& x, int norm, const Axes& axes) {
  if (norm == 1) return sum(absolute(x), axes);
  Variable squared = sum(square(x), axes);
  Array none = squared.array() == 0;
  Variable zero = constant(xp::zeros({}, x.dtype(), x.device()));
  Variable one = constant(xp::ones({}, x.dtype(), x.device()));
  return where(none, zero, sqrt(where(none, one, squared)));
}

}  // namespace

DiscriminativeLoss discriminative_margin_based_clustering_loss(
    const Variable& embeddings, const Variable& labels, double delta_v, double delta_d,
    std::int64_t max_embedding_dim, const DiscriminativeLossOptions& options) {
  LossInputs in(kName, {embeddings});
  const Variable& x = in.x[0];
  std::int64_t most = max_embedding_dim;
  std::string text = fmt::format("{}: embeddings {} and labels {}", kName,
                                 x.array().view().describe(), labels.array().view().describe());
  if (most < 1) throw ValueError(fmt::format("{}: max_embedding_dim {}", text, most));
  if (options.norm != 1 && options.norm != 2) {
    throw ValueError(fmt::format("{}: norm {}, which is neither 1 nor 2", text, options.norm));
  }
  if (x.ndim() != 4 || x.shape(1) != most ||
      labels.shape() != Shape({x.shape(0), x.shape(2), x.shape(3)})) {
    throw ShapeError(fmt::format(
        "{}: embeddings must be (n, {}, height, width) and labels (n, height, width)", text, most));
  }
  char kind = dtype_kind(labels.dtype());
  if (dtype_kind(x.dtype()) != 'f' || (kind != 'i' && kind != 'u')) {
    throw DtypeError(text + ": embeddings must be floating and labels integer");
  }
  check_same_device(kName, x.array(), labels.array());
  std::int64_t n = x.shape(0);
  // (instances, n, embedding, height, width)
  Array instances = (xp::arange(most, int64, x.device()) + 1).reshape({most, 1, 1, 1, 1});
  Array of_pixels = labels.array().astype(int64, false);
  Array mask = xp::expand_dims(xp::expand_dims(of_pixels, 1), 0) == instances;
  Variable inside = constant(mask.astype(x.dtype())), all = expand_dims(x, 0);
  auto pixels = [&](const Axes& axes) {
    Array count = xp::sum(mask, axes).astype(x.dtype());
    return constant(xp::maximum(count, xp::ones({}, x.dtype(), x.device())));
  };
  Variable means = sum(all * inside, {3, 4}) / expand_dims(pixels({2, 3, 4}), 2);
  Variable regularization =
      sum(norm_of(means, options.norm, {1, 2})) / static_cast<double>(most * n);

  Variable spread =
      norm_of((reshape(means, {most, n, most, 1, 1}) - all) * inside, options.norm, 2);
  spread = sum(square(relu(spread - delta_v)), {1, 2, 3}) / pixels({1, 2, 3, 4});
  Variable variance = sum(spread) / static_cast<double>(most);

  // Of each two instances, once.
  Variable between = reshape(means, {most, 1, n, most}) - reshape(means, {1, most, n, most});
  Variable near = square(relu(2 * delta_d - norm_of(between, options.norm, 3)));
  Array numbers = xp::arange(most, int64, x.device());
  Array once = numbers.reshape({most, 1, 1}) < numbers.reshape({1, most, 1});
  double pairs = static_cast<double>(most * (most - 1) / 2 * n);
  Variable distance = sum(near * constant(once.astype(x.dtype()))) / (pairs > 0 ? pairs : 1);
  return {options.alpha * variance, options.beta * distance, options.gamma * regularization};
}

}  // namespace rensa::functions

// Losses over a few classes of many.
#include <fmt/format.h>

#include <optional>

#include "rensa/array/creation.h"
#include "rensa/core/error.h"
#include "rensa/functions/activation.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/classification.h"
#include "rensa/functions/connection.h"
#include "rensa/functions/indexing_functions.h"
#include "rensa/functions/joining_functions.h"
#include "rensa/functions/loss.h"
#include "rensa/functions/math_functions.h"
#include "rensa/functions/reduction_functions.h"

namespace rensa::functions {

Variable negative_sampling(const Variable& x, const Variable& t, const Variable& W,
                           const NegativeSampler& sampler, int sample_size,
                           const NegativeSamplingOptions& options) {
  constexpr const char* name = "negative_sampling";
  if (options.reduce != "sum" && options.reduce != "no") {
    throw ValueError(
        fmt::format("{}: reduce \"{}\", which is none of \"sum\", \"no\"", name, options.reduce));
  }
  if (sample_size < 0) throw ValueError(fmt::format("{}: a sample_size of {}", name, sample_size));
  check_scores_and_labels(name, x.array(), t.array());
  if (x.ndim() != 2 || W.ndim() != 2 || W.shape(1) != x.shape(1)) {
    throw ShapeError(fmt::format("{}: x {} and W {}: x must be (n, k) and W (classes, k)", name,
                                 x.array().view().describe(), W.array().view().describe()));
  }
  std::int64_t n = x.shape(0), each = sample_size + 1;
  Array samples = sampler({n, each}).astype(int64, false);
  if (samples.shape() != Shape{n, each}) {
    throw ShapeError(fmt::format("{}: the sampler gave {} where ({}, {}) was asked for", name,
                                 samples.view().describe(), n, each));
  }
  Array first = xp::arange(each, int64, x.device()) == 0;
  Array labels = label_places(t.array(), W.shape(0), -1).reshape({-1, 1});
  samples = xp::where(first, labels, samples);
  if (options.return_samples) *options.return_samples = samples;
  Variable rows = embed_id(constant(samples), W);
  Variable products = sum(rows * reshape(x, {n, 1, x.shape(1)}), 2);
  Array one = xp::ones({}, x.dtype(), x.device());
  Variable losses = sum(softplus(products * constant(xp::where(first, -one, one))), 1);
  losses = where(t != -1, losses, constant(xp::zeros({}, losses.dtype(), losses.device())));
  return options.reduce == "sum" ? sum(losses) : losses;
}

Variable black_out(const Variable& x, const Variable& t, const Variable& W, const Variable& samples,
                   std::string_view reduce) {
  constexpr const char* name = "black_out";
  if (reduce != "mean" && reduce != "no") {
    throw ValueError(
        fmt::format("{}: reduce \"{}\", which is none of \"mean\", \"no\"", name, reduce));
  }
  check_scores_and_labels(name, x.array(), t.array());
  bool fits = x.ndim() == 2 && W.ndim() == 2 && W.shape(1) == x.shape(1) && samples.ndim() == 2 &&
              samples.shape(0) == x.shape(0);
  if (!fits) {
    throw ShapeError(fmt::format(
        "{}: x {}, W {} and samples {}: x must be (n, k), W (classes, k) and samples (n, s)", name,
        x.array().view().describe(), W.array().view().describe(),
        samples.array().view().describe()));
  }
  std::int64_t n = x.shape(0);
  // The right class first: (n, 1 + s).
  Variable rows = embed_id(concat({reshape(cast(t, int64), {n, 1}), cast(samples, int64)}, 1), W);
  Variable scores = sum(rows * reshape(x, {n, 1, x.shape(1)}), 2);
  Variable logs = scores - logsumexp(scores, 1, true);
  Variable others = get_item(logs, {Slice(), Slice(1, none)});
  Variable losses = -(get_item(logs, {Slice(), 0}) + sum(log1p(-exp(others)), 1));
  return reduce == "mean" ? mean(losses) : losses;
}

}  // namespace rensa::functions

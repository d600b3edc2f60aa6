// L::Maxout, L::PReLU and L::Swish.
#include "rensa/links/trained_activations.h"

#include <fmt/format.h>

#include <span>

#include "rensa/core/error.h"
#include "rensa/functions/activation.h"

namespace rensa::links {

namespace {

std::int64_t pooled(std::int64_t out, int pool) {
  if (pool < 1) throw ValueError(fmt::format("Maxout: a pool of {}", pool));
  return out * pool;
}

LinearOptions linear_options(const MaxoutOptions& options) {
  return {
      .nobias = options.nobias, .initialW = options.initialW, .initial_bias = options.initial_bias};
}

}  // namespace

Maxout::Maxout(std::int64_t in, std::int64_t out, int pool, const MaxoutOptions& options)
    : linear(in, pooled(out, pool), linear_options(options)), pool_(pool) {}

Maxout::Maxout(None, std::int64_t out, int pool, const MaxoutOptions& options)
    : linear(none, pooled(out, pool), linear_options(options)), pool_(pool) {}

Variable Maxout::operator()(const Variable& x) const { return F::maxout(linear(x), pool_); }

PReLU::PReLU(const Shape& shape, Initializer init) : W(std::move(init), shape) {
  W.body()->name = "W";
}

Variable PReLU::operator()(const Variable& x) const { return F::prelu(x, W); }

Swish::Swish(const Shape& beta_shape, Initializer beta_init) : Swish(none, std::move(beta_init)) {
  beta.initialize(beta_shape);
}

Swish::Swish(None, Initializer beta_init) : beta(std::move(beta_init)) {
  beta.body()->name = "beta";
}

Variable Swish::operator()(const Variable& x) const {
  if (!beta.is_initialized()) {
    if (x.ndim() == 0) throw ShapeError("Swish: x has no axis of samples");
    beta.initialize(Shape(std::span(x.shape()).subspan(1)));
  }
  return F::swish(x, beta);
}

}  // namespace rensa::links

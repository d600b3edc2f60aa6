// L::Bias and L::Scale.
#include "rensa/links/scale.h"

#include <fmt/format.h>

#include "rensa/core/error.h"
#include "rensa/functions/math_functions.h"

namespace rensa::links {

namespace {

/// Throws unless a parameter is there exactly where the call has no argument in its place.
void check(const char* link, const char* parameter, bool has_parameter, bool has_argument) {
  if (has_parameter != has_argument) return;
  throw ValueError(
      has_argument
          ? fmt::format("{0}: {1} is a parameter here; call it with x alone", link, parameter)
          : fmt::format("{0}: {1} is no parameter here; call it with x and {1}, or give its shape",
                        link, parameter));
}

}  // namespace

Bias::Bias(int axis, const std::optional<Shape>& shape) : axis(axis) {
  if (!shape) return;
  b = Parameter(0, *shape);
  b.body()->name = "b";
}

Variable Bias::operator()(const Variable& x) const {
  check("Bias", "b", b.defined(), false);
  return F::bias(x, b, axis);
}

Variable Bias::operator()(const Variable& x, const Variable& y) const {
  check("Bias", "b", b.defined(), true);
  return F::bias(x, y, axis);
}

Scale::Scale(const ScaleOptions& options) : axis(options.axis) {
  if (options.W_shape) {
    W = Parameter(1, *options.W_shape);
    W.body()->name = "W";
  }
  if (!options.bias_term) return;
  std::optional<Shape> shape = options.bias_shape ? options.bias_shape : options.W_shape;
  if (!shape) throw ValueError("Scale: a bias needs a bias_shape where W is no parameter");
  bias.emplace(axis, shape);
}

Variable Scale::operator()(const Variable& x) const {
  check("Scale", "W", W.defined(), false);
  Variable y = F::scale(x, W, axis);
  return bias ? (*bias)(y) : y;
}

Variable Scale::operator()(const Variable& x, const Variable& y) const {
  check("Scale", "W", W.defined(), true);
  Variable z = F::scale(x, y, axis);
  return bias ? (*bias)(z) : z;
}

}  // namespace rensa::links

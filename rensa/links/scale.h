// L::Bias and L::Scale: sums and products with a smaller array, along some axes.
#pragma once

#include <optional>

#include "rensa/array/index.h"
#include "rensa/links/link.h"

namespace rensa {
namespace links {

/// y = x + b, b's first axis at x's axis `axis`. b is a parameter of the given shape, 0 at first;
/// left out, it is the second argument of each call.
class Bias : public Chain<Bias> {
 public:
  explicit Bias(int axis = 1, const std::optional<Shape>& shape = std::nullopt);
  void members(Visitor& v) override { v("b", b); }

  /// Throws ValueError where b is missing or there twice, and as F::bias.
  Variable operator()(const Variable& x) const;
  Variable operator()(const Variable& x, const Variable& y) const;

  Parameter b;
  int axis;
};

struct ScaleOptions {
  int axis = 1;
  std::optional<Shape> W_shape = {};     // left out: W is the second argument of each call
  bool bias_term = false;                // whether y = x * W + b
  std::optional<Shape> bias_shape = {};  // W_shape when left out
};

/// y = W * x (+ b), W's first axis at x's axis `axis`. W is 1 at first.
class Scale : public Chain<Scale> {
 public:
  /// Throws ValueError for a bias without a shape.
  explicit Scale(const ScaleOptions& options = {});
  void members(Visitor& v) override { v("W", W), v("bias", bias); }

  /// Throws ValueError where W is missing or there twice, and as F::scale.
  Variable operator()(const Variable& x) const;
  Variable operator()(const Variable& x, const Variable& y) const;

  Parameter W;
  std::optional<Bias> bias;
  int axis;
};

}  // namespace links

namespace L = links;

}  // namespace rensa

// Functions with weights: forward and backward.
#include "rensa/functions/connection.h"

#include <fmt/format.h>

#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/math_functions.h"

namespace rensa::functions {

namespace {

void check(const Arrays& x) {
  bool fits = x[0].ndim() == 2 && x[1].ndim() == 2 && x[0].shape(1) == x[1].shape(1) &&
              (x.size() < 3 || (x[2].ndim() == 1 && x[2].shape(0) == x[1].shape(0)));
  bool one_dtype = dtype_kind(x[0].dtype()) == 'f' && x[1].dtype() == x[0].dtype() &&
                   (x.size() < 3 || x[2].dtype() == x[0].dtype());
  if (fits && one_dtype) return;
  std::string text =
      fmt::format("linear: x {} and W {}", x[0].view().describe(), x[1].view().describe());
  if (x.size() == 3) text += fmt::format(" and b {}", x[2].view().describe());
  if (!fits) throw ShapeError(text + ": x must be (n, k), W (m, k) and b (m,)");
  throw DtypeError(text + ": all must be of one floating dtype; use F::cast or astype");
}

class Linear final : public FunctionNode {
 public:
  Linear() : FunctionNode("linear") {}

  Arrays forward(const Arrays& x) override {
    check(x);
    retain_inputs({0, 1});
    return {xp::linear(x[0], x[1], x.size() == 3 ? x[2] : Array())};
  }
  Variables backward(const Indexes& targets, const Variables& gy) override {
    Variables kept = get_retained_inputs(), gx;
    gx.reserve(targets.size());
    for (int i : targets) {
      if (i == 0) gx.push_back(matmul(gy[0], kept[1]));
      else if (i == 1) gx.push_back(matmul(gy[0], kept[0], true, false));
      else gx.push_back(sum(gy[0], 0));
    }
    return gx;
  }
};

}  // namespace

Variable linear(const Variable& x, const Variable& W, const Variable& b, int n_batch_axes) {
  if (n_batch_axes < 1 || n_batch_axes > x.ndim()) {
    throw ValueError(
        fmt::format("linear: n_batch_axes {} for x {}", n_batch_axes, x.array().view().describe()));
  }
  Variable rows = x;
  std::int64_t n = 1;
  for (int i = 0; i < n_batch_axes; ++i) n *= x.shape()[i];
  if (x.ndim() > 2 || n_batch_axes > 1) {
    std::int64_t features = 1;
    for (int i = n_batch_axes; i < x.ndim(); ++i) features *= x.shape()[i];
    rows = reshape(x, {n, features});
  }
  Variable y = b.defined() ? apply<Linear>({rows, W, b})[0] : apply<Linear>({rows, W})[0];
  if (n_batch_axes == 1) return y;
  Shape shape(
      std::span<const std::int64_t>(x.shape().data(), static_cast<std::size_t>(n_batch_axes)));
  shape.push_back(y.shape()[1]);
  return reshape(y, shape);
}

}  // namespace rensa::functions

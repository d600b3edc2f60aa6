// Functions with weights: forward and backward.
#include "rensa/functions/connection.h"

#include <fmt/format.h>

#include "rensa/array/creation.h"
#include "rensa/array/indexing_routines.h"
#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/math_functions.h"
#include "rensa/functions/node_templates.h"
#include "rensa/functions/products_internal.h"

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
  std::int64_t multiply_adds(const Arrays& x, const Arrays& y) const override {
    return y[0].size() * x[1].shape(1);
  }
  Variables backward(const Indexes& targets, const Variables& gy) override {
    Variables kept = get_retained_inputs(), gx;
    gx.reserve(targets.size());
    for (int i : targets) {
      if (i == 0) gx.push_back(matmul_as_gradient(*inputs()[0], gy[0], kept[1]));
      else if (i == 1) gx.push_back(matmul(gy[0], kept[0], true, false));
      else gx.push_back(sum(gy[0], 0));
    }
    return gx;
  }
  std::optional<FunctionAttributes> attributes() const override { return FunctionAttributes(); }
};

// --- rows by their places ---

/// Which rows of a matrix (n, k).
struct Rows {
  KeptArray places;
  Array ignored;  // where there are zeros instead; undefined: nowhere
  std::int64_t n;
  Array given;  // what places were made of
};

/// The rows (..., k) that `rows` names.
struct TakeRows {
  static constexpr const char* name = "embed_id";
  static constexpr Keep keep = Keep::nothing;
  static Array forward(const Array& matrix, const Rows& rows) {
    Array taken =
        xp::take(matrix, rows.places.get(name, "places"), {.axis = 0, .mode = IndexMode::strict});
    return rows.ignored.defined() ? without(taken, rows.ignored) : taken;
  }
  static Variable backward(const Variable&, const Variable& gy, const Rows& rows);
  static std::optional<FunctionAttributes> attributes(const Rows& rows) {
    if (rows.ignored.defined()) return std::nullopt;
    return FunctionAttributes{.arrays = {{"indices", rows.given}}};
  }
  static Array without(const Array& rows, const Array& ignored) {
    return xp::where(ignored, xp::zeros({}, rows.dtype(), rows.device()), rows);
  }
};

/// Its gradient: rows added up where they belong. Linear, so the gradient of it is TakeRows.
struct AddRows {
  static constexpr const char* name = "embed_id_grad";
  static constexpr Keep keep = Keep::nothing;
  static Array forward(const Array& gy, const Rows& rows) {
    std::int64_t k = gy.shape(-1);
    Array matrix = xp::zeros({rows.n, k}, gy.dtype(), gy.device());
    Array flat = rows.places.get(name, "places").reshape({-1});
    Array added = rows.ignored.defined() ? TakeRows::without(gy, rows.ignored) : gy;
    xp::scatter_add(matrix, flat, added.reshape({flat.size(), k}));
    return matrix;
  }
  static Variable backward(const Variable&, const Variable& gy, const Rows& rows) {
    return unary<TakeRows>(gy, rows);
  }
};

Variable TakeRows::backward(const Variable&, const Variable& gy, const Rows& rows) {
  return unary<AddRows>(gy, rows);
}

}  // namespace

Variable embed_id(const Variable& x, const Variable& W, const EmbedIDOptions& options) {
  char kind = dtype_kind(x.dtype());
  bool fits = W.ndim() == 2;
  if (!fits || (kind != 'i' && kind != 'u') || dtype_kind(W.dtype()) != 'f') {
    std::string text = fmt::format("embed_id: x {} and W {}", x.array().view().describe(),
                                   W.array().view().describe());
    if (!fits) throw ShapeError(text + ": W must be (n, k)");
    throw DtypeError(text + ": x must be of integers, W floating");
  }
  Array places = x.array(), ignored;
  if (options.ignore_label) {
    ignored = places == *options.ignore_label;
    places = xp::where(ignored, xp::zeros({}, places.dtype(), places.device()), places);
    ignored = xp::expand_dims(ignored, -1);
  }
  return unary<TakeRows>(W, Rows{KeptArray(places), ignored, W.shape(0), x.array()});
}

Variable bilinear(const Variable& e1, const Variable& e2, const Variable& W, const Variable& V1,
                  const Variable& V2, const Variable& b) {
  if (V1.defined() != V2.defined() || V1.defined() != b.defined()) {
    throw ValueError("bilinear: V1, V2 and b are given together, or none of them");
  }
  auto is = [](const Variable& v, const Shape& shape) {
    return !v.defined() || v.shape() == shape;
  };
  bool fits = e1.ndim() > 1 && e2.ndim() > 1 && W.ndim() == 3 && e1.shape(0) == e2.shape(0);
  if (fits) {
    std::int64_t j = W.shape(0), k = W.shape(1), l = W.shape(2), n = e1.shape(0);
    fits =
        e1.size() == n * j && e2.size() == n * k && is(V1, {j, l}) && is(V2, {k, l}) && is(b, {l});
  }
  if (!fits) {
    std::string text = fmt::format("bilinear: e1 {}, e2 {}, W {}", e1.array().view().describe(),
                                   e2.array().view().describe(), W.array().view().describe());
    if (V1.defined()) {
      text += fmt::format(", V1 {}, V2 {}, b {}", V1.array().view().describe(),
                          V2.array().view().describe(), b.array().view().describe());
    }
    throw ShapeError(text +
                     ": e1 must be (n, j), e2 (n, k), W (j, k, l), V1 (j, l), V2 (k, l), b (l,)");
  }
  std::int64_t n = e1.shape(0), j = W.shape(0), k = W.shape(1), l = W.shape(2);
  Variable left = reshape(e1, {n, j}), right = reshape(e2, {n, k});
  Variable both = reshape(reshape(left, {n, j, 1}) * reshape(right, {n, 1, k}), {n, j * k});
  Variable y = matmul(both, reshape(W, {j * k, l}));
  return V1.defined() ? y + matmul(left, V1) + matmul(right, V2) + b : y;
}

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

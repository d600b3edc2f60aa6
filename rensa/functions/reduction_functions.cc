// Reductions and running sums: forward and backward.
#include "rensa/functions/reduction_functions.h"

#include <fmt/format.h>

#include "rensa/array/creation.h"
#include "rensa/array/scan.h"
#include "rensa/array/statistics.h"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/differentiable.h"
#include "rensa/functions/joining_functions.h"
#include "rensa/functions/math_functions.h"
#include "rensa/operations/scan/product_grad.h"
#include "rensa/operations/scan/recurrence.h"

namespace rensa::functions {

namespace gradients {
extern const Gradient extremum;
}

namespace {

/// What is reduced of an array: the shape with those axes of extent 1, and how many elements go
/// into one.
struct Reduced {
  Reduced(const char* operation, const Shape& x, const Axes& axis)
      : axes(axis.mask(operation, x.ndim())), kept(x) {
    for (int i = 0; i < x.ndim(); ++i) {
      if (!(axes >> i & 1u)) continue;
      count *= x[i];
      kept[i] = 1;
    }
  }
  unsigned axes;
  Shape kept;
  std::int64_t count = 1;
};

/// A function that reduces some axes.
class Reduction : public FunctionNode {
 public:
  Reduction(const char* name, const Axes& axis, bool keepdims)
      : FunctionNode(name), axis_(axis), keepdims_(keepdims) {}

 protected:
  Reduced reduced() const { return Reduced(name(), inputs()[0]->shape, axis_); }
  Axes axis_;
  bool keepdims_;
};

class Sum final : public Reduction {
 public:
  Sum(const Axes& axis, bool keepdims, bool mean)
      : Reduction(mean ? "mean" : "sum", axis, keepdims), mean_(mean) {}

  Arrays forward(const Arrays& x) override {
    return {mean_ ? xp::mean(x[0], axis_, keepdims_) : xp::sum(x[0], axis_, keepdims_)};
  }
  Variables backward(const Indexes&, const Variables& gy) override {
    const VariableNode& x = *inputs()[0];
    Reduced r = reduced();
    Variable g = reshape(gy[0], r.kept);
    if (mean_) g = g / static_cast<double>(r.count);
    return {broadcast_to(cast(g, x.dtype), x.shape)};
  }

 private:
  bool mean_;
};

class Extremum final : public Reduction {
 public:
  Extremum(const Axes& axis, bool keepdims, bool greatest)
      : Reduction(greatest ? "max" : "min", axis, keepdims), greatest_(greatest) {}

  Arrays forward(const Arrays& x) override {
    retain_inputs({0});
    retain_outputs({0});
    return {greatest_ ? xp::max(x[0], axis_, keepdims_) : xp::min(x[0], axis_, keepdims_)};
  }
  Variables backward(const Indexes&, const Variables& gy) override {
    Variable x = get_retained_inputs()[0], y = get_retained_outputs()[0];
    Shape kept = reduced().kept;
    Variable gx = gradient_of(gradients::extremum, x, reshape(y, kept), reshape(gy[0], kept));
    return {cast(gx, x.dtype())};
  }

 private:
  bool greatest_;
};

/// x[i + d] along the last axis, zeros behind the end.
Variable ahead(const Variable& x, std::int64_t d) {
  Shape rest = x.shape();
  rest[-1] = d;
  return concat(
      {get_item(x, {ellipsis, Slice(d, none)}), constant(xp::zeros(rest, x.dtype(), x.device()))},
      -1);
}

/// h[i] = g[i] + x[i + 1] * h[i + 1] along the last axis, of one real floating dtype; a g of extent
/// 1 there is that of the last place, 0 the others.
class Recurrence final : public FunctionNode {
 public:
  Recurrence() : FunctionNode("cumprod_grad") {}

  Arrays forward(const Arrays& gx) override {
    retain_inputs({1});
    retain_outputs({0});
    Array g = gx[0].ascontiguous(), x = gx[1].ascontiguous();
    Array h = xp::empty(x.shape(), x.dtype(), x.device());
    operations::Recurrence op(name());
    op.in = g.reshape({-1, g.shape(-1)}).operand();
    op.factor = x.reshape({-1, x.shape(-1)}).operand();
    op.out = h.reshape({-1, x.shape(-1)}).operand();
    launch(op);
    return {h};
  }
  // The same the other way round: q[i] = gh[i] + x[i] * q[i - 1] reaches element i.
  Variables backward(const Indexes&, const Variables& gh) override {
    Variable x = get_retained_inputs()[0], h = get_retained_outputs()[0];
    Variable q =
        rensa::apply<Recurrence>({flip(gh[0], -1), roll(flip(x, -1), 1, -1)})[0];  // flipped
    bool last_alone = inputs()[0]->shape[-1] < x.shape(-1);
    Variable g = last_alone ? get_item(q, {ellipsis, Slice(0, 1)}) : flip(q, -1);
    return {g, h * flip(ahead(q, 1), -1)};
  }
};

/// Whether Recurrence takes x. Of a long row alone a GPU has but one block.
bool has_recurrence(const Variable& x) {
  constexpr std::int64_t kLong = 65536, kManyRows = 64;
  std::int64_t n = x.shape(-1);
  return dtype_kind(x.dtype()) == 'f' && (n <= kLong || x.size() / n >= kManyRows);
}

/// The product of all elements before each one along the last axis.
Variable products_before(const Variable& x) {
  Shape shape = x.shape();
  std::int64_t n = shape[-1];
  shape[-1] = 1;
  Variable one = constant(xp::ones(shape, x.dtype(), x.device()));
  if (n == 1) return one;
  return concat({one, cumprod(get_item(x, {ellipsis, Slice(0, n - 1)}), -1)}, -1);
}

/// g times the product of all others, of each element of `rows` (rows, n); g is (rows, 1). One
/// kernel, where backward is recorded functions: the products before times those behind.
Variable products_of_others(const Variable& rows, const Variable& g) {
  using operations::ProductGrad;
  if (!config().enable_backprop && dtype_kind(rows.dtype()) == 'f' &&
      rows.shape(1) <= ProductGrad::kMost) {
    Array x = rows.array().ascontiguous(), scale = g.array().ascontiguous();
    Array gx = xp::empty(x.shape(), x.dtype(), x.device());
    ProductGrad op;
    op.in = x.operand();
    op.scale = scale.operand();
    op.out = gx.operand();
    launch(op);
    return Variable(gx, false);
  }
  if (has_recurrence(rows)) {
    Variable one = constant(xp::ones(g.shape(), rows.dtype(), rows.device()));
    Variable before = flip(apply<Recurrence>({one, flip(rows, -1)})[0], -1);
    return before * apply<Recurrence>({g, rows})[0];
  }
  return products_before(rows) * flip(products_before(flip(rows, -1)), -1) * g;
}

class Prod final : public Reduction {
 public:
  Prod(const Axes& axis, bool keepdims) : Reduction("prod", axis, keepdims) {}

  Arrays forward(const Arrays& x) override {
    retain_inputs({0});
    return {xp::prod(x[0], axis_, keepdims_)};
  }
  Variables backward(const Indexes&, const Variables& gy) override {
    Variable x = get_retained_inputs()[0];
    Reduced r = reduced();
    Shape front, back, inverse = x.shape();
    for (int i = 0; i < x.ndim(); ++i) (r.axes >> i & 1u ? back : front).push_back(i);
    Shape order = front;
    for (std::int64_t axis : back) order.push_back(axis);
    for (int i = 0; i < order.ndim(); ++i) inverse[static_cast<int>(order[i])] = i;
    Variable turned = transpose(x, order);
    if (x.size() == 0 || r.count == 1) {
      return {broadcast_to(reshape(cast(gy[0], x.dtype()), r.kept), x.shape())};
    }
    Variable rows = reshape(turned, {-1, r.count}), g = reshape(cast(gy[0], x.dtype()), {-1, 1});
    Variable gx = products_of_others(rows, g);
    return {cast(transpose(reshape(gx, turned.shape()), inverse), x.dtype())};
  }
};

class Var final : public Reduction {
 public:
  Var(const Axes& axis, double ddof, bool keepdims)
      : Reduction("var", axis, keepdims), ddof_(ddof) {}

  Arrays forward(const Arrays& x) override {
    retain_inputs({0});
    return {xp::var(x[0], {.axis = axis_, .ddof = ddof_, .keepdims = keepdims_})};
  }
  Variables backward(const Indexes&, const Variables& gy) override {
    Variable x = get_retained_inputs()[0];
    Reduced r = reduced();
    double factor = 2 / (static_cast<double>(r.count) - ddof_);
    Variable gx = (x - mean(x, axis_, true)) * (reshape(gy[0], r.kept) * factor);
    return {cast(gx, x.dtype())};
  }

 private:
  double ddof_;
};

class Std final : public Reduction {
 public:
  Std(const Axes& axis, double ddof, bool keepdims)
      : Reduction("std", axis, keepdims), ddof_(ddof) {}

  Arrays forward(const Arrays& x) override {
    retain_inputs({0});
    retain_outputs({0});
    return {xp::std(x[0], {.axis = axis_, .ddof = ddof_, .keepdims = keepdims_})};
  }
  Variables backward(const Indexes&, const Variables& gy) override {
    Variable x = get_retained_inputs()[0], y = get_retained_outputs()[0];
    Reduced r = reduced();
    double count = static_cast<double>(r.count) - ddof_;
    Variable gx = (x - mean(x, axis_, true)) * (reshape(gy[0] / y, r.kept) / count);
    return {cast(gx, x.dtype())};
  }

 private:
  double ddof_;
};

class Logsumexp final : public Reduction {
 public:
  Logsumexp(const Axes& axis, bool keepdims) : Reduction("logsumexp", axis, keepdims) {}

  Arrays forward(const Arrays& x) override {
    retain_inputs({0});
    retain_outputs({0});
    Array most = xp::max(x[0], axis_, true);
    most = xp::where(xp::isfinite(most), most, 0.0);
    Array y = xp::log(xp::sum(xp::exp(x[0] - most), axis_, true)) + most;
    if (keepdims_) return {y};
    return {y.reshape(xp::max(x[0], axis_).shape())};
  }
  Variables backward(const Indexes&, const Variables& gy) override {
    Variable x = get_retained_inputs()[0], y = get_retained_outputs()[0];
    Shape kept = reduced().kept;
    return {cast(reshape(gy[0], kept) * exp(x - reshape(y, kept)), x.dtype())};
  }
};

// --- running ---
class Cumsum final : public FunctionNode {
 public:
  explicit Cumsum(int axis) : FunctionNode("cumsum"), axis_(axis) {}
  Arrays forward(const Arrays& x) override { return {xp::cumsum(x[0], axis_)}; }
  Variables backward(const Indexes&, const Variables& gy) override {
    return {cast(flip(cumsum(flip(gy[0], axis_), axis_), axis_), inputs()[0]->dtype)};
  }

 private:
  int axis_;
};

/// Recurrence of any dtype. A long row alone goes by sums of twice as many terms in each step.
Variable recurrence(const Variable& g, const Variable& x) {
  if (has_recurrence(x)) return apply<Recurrence>({cast(g, x.dtype()), x})[0];
  Variable h = g, factor = x;
  for (std::int64_t d = 1; d < x.shape(-1); d *= 2) {
    factor = d == 1 ? ahead(factor, 1) : factor * ahead(factor, d / 2);
    h = h + factor * ahead(h, d);
  }
  return h;
}

class Cumprod final : public FunctionNode {
 public:
  explicit Cumprod(int axis) : FunctionNode("cumprod"), axis_(axis) {}
  Arrays forward(const Arrays& x) override {
    retain_inputs({0});
    retain_outputs({0});
    return {xp::cumprod(x[0], axis_)};
  }
  // What of the gradients behind reaches element i is h[i] = gy[i] + x[i + 1] * h[i + 1]: no
  // division, and so no harm in zeros.
  Variables backward(const Indexes&, const Variables& gy) override {
    Dtype dtype = inputs()[0]->dtype;
    Variable x = swapaxes(get_retained_inputs()[0], axis_, -1);
    Variable y = swapaxes(get_retained_outputs()[0], axis_, -1);
    std::int64_t n = x.shape(-1);
    if (x.size() == 0 || n == 1) return {cast(gy[0], dtype)};
    Shape first = x.shape();
    first[-1] = 1;
    Variable one = constant(xp::ones(first, y.dtype(), y.device()));
    Variable before = concat({one, get_item(y, {ellipsis, Slice(0, n - 1)})}, -1);
    Variable h = recurrence(swapaxes(gy[0], axis_, -1), x);
    return {cast(swapaxes(before * h, axis_, -1), dtype)};
  }

 private:
  int axis_;
};

template <class Node> Variable running(const char* operation, const Variable& x, const Axes& axis) {
  if (axis.all()) return apply<Node>({reshape(x, {-1})}, 0)[0];
  Shape axes = axis.values();
  if (axes.ndim() != 1) {
    throw ValueError(fmt::format("{}: axis {} is not one axis", operation, axes.str()));
  }
  return apply<Node>({x}, normalize_axis(operation, axes[0], x.ndim()))[0];
}

}  // namespace

Variable sum(const Variable& x, Axes axis, bool keepdims) {
  return apply<Sum>({x}, axis, keepdims, false)[0];
}

Variable mean(const Variable& x, Axes axis, bool keepdims) {
  return apply<Sum>({x}, axis, keepdims, true)[0];
}

Variable prod(const Variable& x, Axes axis, bool keepdims) {
  return apply<Prod>({x}, axis, keepdims)[0];
}

Variable average(const Variable& x, Axes axis, const Variable& weights, bool keepdims) {
  if (!weights.defined()) return mean(x, axis, keepdims);
  Variable w = weights;
  if (w.shape() != x.shape()) {
    Shape axes = axis.all() ? Shape() : axis.values();
    bool one = axes.ndim() == 1 && w.ndim() == 1;
    int along = one ? normalize_axis("average", axes[0], x.ndim()) : 0;
    if (!one || w.shape(0) != x.shape(along)) {
      throw ShapeError(
          fmt::format("average: weights {} for {}: they have its shape, or are 1-d and as many as "
                      "the one axis is long",
                      w.array().view().describe(), x.array().view().describe()));
    }
    Shape beside = Shape::filled(x.ndim(), 1);
    beside[along] = w.shape(0);
    return sum(x * reshape(w, beside), axis, keepdims) / sum(w);
  }
  return sum(x * w, axis, keepdims) / sum(w, axis, keepdims);
}

Variable max(const Variable& x, Axes axis, bool keepdims) {
  return apply<Extremum>({x}, axis, keepdims, true)[0];
}

Variable min(const Variable& x, Axes axis, bool keepdims) {
  return apply<Extremum>({x}, axis, keepdims, false)[0];
}

Variable argmax(const Variable& x, Axes axis) { return constant(xp::argmax(x.array(), axis)); }
Variable argmin(const Variable& x, Axes axis) { return constant(xp::argmin(x.array(), axis)); }

Variable var(const Variable& x, Axes axis, double ddof, bool keepdims) {
  return apply<Var>({x}, axis, ddof, keepdims)[0];
}

Variable std(const Variable& x, Axes axis, double ddof, bool keepdims) {
  return apply<Std>({x}, axis, ddof, keepdims)[0];
}

Variable logsumexp(const Variable& x, Axes axis, bool keepdims) {
  return apply<Logsumexp>({x}, axis, keepdims)[0];
}

Variable cumsum(const Variable& x, Axes axis) { return running<Cumsum>("cumsum", x, axis); }
Variable cumprod(const Variable& x, Axes axis) { return running<Cumprod>("cumprod", x, axis); }

Variable batch_l2_norm_squared(const Variable& x) {
  if (x.ndim() == 0) {
    throw ShapeError(fmt::format("batch_l2_norm_squared: {} has no axis of a batch",
                                 x.array().view().describe()));
  }
  std::int64_t n = x.shape(0);
  return sum(square(reshape(x, {n, n == 0 ? 0 : x.size() / n})), 1);
}

}  // namespace rensa::functions

namespace rensa {

Variable Variable::sum(Axes axis, bool keepdims) const { return F::sum(*this, axis, keepdims); }
Variable Variable::mean(Axes axis, bool keepdims) const { return F::mean(*this, axis, keepdims); }
Variable Variable::prod(Axes axis, bool keepdims) const { return F::prod(*this, axis, keepdims); }
Variable Variable::max(Axes axis, bool keepdims) const { return F::max(*this, axis, keepdims); }
Variable Variable::min(Axes axis, bool keepdims) const { return F::min(*this, axis, keepdims); }
Variable Variable::var(Axes axis, double ddof, bool keepdims) const {
  return F::var(*this, axis, ddof, keepdims);
}
Variable Variable::std(Axes axis, double ddof, bool keepdims) const {
  return F::std(*this, axis, ddof, keepdims);
}
Variable Variable::sum(const F::ReduceOptions& options) const { return F::sum(*this, options); }
Variable Variable::mean(const F::ReduceOptions& options) const { return F::mean(*this, options); }
Variable Variable::prod(const F::ReduceOptions& options) const { return F::prod(*this, options); }
Variable Variable::max(const F::ReduceOptions& options) const { return F::max(*this, options); }
Variable Variable::min(const F::ReduceOptions& options) const { return F::min(*this, options); }
Variable Variable::var(const F::VarianceOptions& options) const { return F::var(*this, options); }
Variable Variable::std(const F::VarianceOptions& options) const { return F::std(*this, options); }
Variable Variable::cumsum(Axes axis) const { return F::cumsum(*this, axis); }
Variable Variable::cumprod(Axes axis) const { return F::cumprod(*this, axis); }
Array Variable::argmax(Axes axis) const { return xp::argmax(array(), axis); }
Array Variable::argmin(Axes axis) const { return xp::argmin(array(), axis); }

}  // namespace rensa

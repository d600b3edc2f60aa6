// Activation functions: forward and backward.
#include "rensa/functions/activation.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "rensa/array/creation.h"
#include "rensa/array/pointwise.h"
#include "rensa/array/random_basics.h"
#include "rensa/array/softmax.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/launcher.h"
#include "rensa/functions/differentiable_rows.h"
#include "rensa/functions/math_functions.h"
#include "rensa/functions/node_templates.h"
#include "rensa/functions/operations/random_slopes/random_slopes.h"
#include "rensa/functions/operations/softmax_grad/softmax_grad.h"
#include "rensa/functions/reduction_functions.h"

namespace rensa::functions {

namespace {

/// gy where the output of relu is positive. Linear in gy, so its gradient is itself.
struct ReluGrad {
  static constexpr const char* name = "relu_grad";
  static constexpr Keep keep = Keep::nothing;
  static Array forward(const Array& gy, const KeptArray& y) {
    return xp::elementwise(ufunc::relu_grad, {gy, y.get("relu", "output")});
  }
  static Variable backward(const Variable&, const Variable& ggx, const KeptArray& y) {
    return unary<ReluGrad>(ggx, y);
  }
};

struct Relu {
  static constexpr const char* name = "relu";
  static constexpr Keep keep = Keep::output;
  static Array forward(const Array& x) { return xp::elementwise(ufunc::relu, {x}); }
  static Variable backward(const Variable& y, const Variable& gy) {
    return unary<ReluGrad>(gy, KeptArray(y.array()));
  }
};

/// rrelu with slopes from one place of the generator's sequence, drawn in the same kernel: those of
/// uniform(l, u, x.shape(), float32), of a contiguous x.
class DrawnRrelu final : public FunctionNode {
 public:
  DrawnRrelu(double l, double u, xp::random::GeneratorPosition position, Array* return_r)
      : FunctionNode("rrelu"), l_(l), u_(u), position_(position), return_r_(return_r) {}

  Arrays forward(const Arrays& inputs) override {
    retain_inputs({0});
    const Array& x = inputs[0];
    Array r = xp::empty(x.shape(), x.dtype(), x.device()), y = xp::empty_like(r);
    operations::RandomSlopes op;
    op.low = l_;
    op.high = u_;
    op.seed = position_.seed;
    op.offset = position_.offset;
    op.in = x.operand();
    op.r = r.operand();
    op.out = y.operand();
    launch(op);
    if (return_r_) *std::exchange(return_r_, nullptr) = r;
    r_.emplace(std::move(r));
    return {y};
  }
  Variables backward(const Indexes&, const Variables& gy) override {
    Variable r = constant(r_->get("rrelu", "slopes"));
    return {fit(gradient_of(gradients::rrelu, get_retained_inputs()[0], r, gy[0]), *inputs()[0])};
  }

 private:
  double l_, u_;
  xp::random::GeneratorPosition position_;
  Array* return_r_;
  std::optional<KeptArray> r_;
};

/// gx by row along `axis` of softmax's output y, or of its logarithm's: one kernel, where backward
/// is recorded what it computes as functions.
Variable softmax_gradient(bool log, const Variable& y, const Variable& gy, int axis) {
  if (config().enable_backprop) {
    return log ? gy - exp(y) * sum(gy, axis, true) : y * (gy - sum(gy * y, axis, true));
  }
  int along = normalize_axis("softmax", axis, y.ndim()), last = y.ndim() - 1;
  auto rows_of = [&](const Array& a) { return a.swapaxes(along, last).ascontiguous(); };
  Array outputs = rows_of(y.array()), gradients = rows_of(gy.array());
  Array gx = xp::empty(outputs.shape(), outputs.dtype(), outputs.device());
  if (gx.size() > 0) {
    operations::SoftmaxGrad op(log);
    Shape flat = {gx.size() / gx.shape(last), gx.shape(last)};
    op.y = outputs.reshape(flat).operand();
    op.gy = gradients.reshape(flat).operand();
    op.gx = gx.reshape(flat).operand();
    launch(op);
  }
  return constant(gx.swapaxes(along, last));
}

struct Softmax {
  static constexpr const char* name = "softmax";
  static constexpr Keep keep = Keep::output;
  static Array forward(const Array& x, int axis) { return xp::softmax(x, axis); }
  static FunctionAttributes attributes(int axis) { return {.integers = {{"axis", axis}}}; }
  static Variable backward(const Variable& y, const Variable& gy, int axis) {
    return softmax_gradient(false, y, gy, axis);
  }
};

struct LogSoftmax {
  static constexpr const char* name = "log_softmax";
  static constexpr Keep keep = Keep::output;
  static Array forward(const Array& x, int axis) { return xp::log_softmax(x, axis); }
  static FunctionAttributes attributes(int axis) { return {.integers = {{"axis", axis}}}; }
  static Variable backward(const Variable& y, const Variable& gy, int axis) {
    return softmax_gradient(true, y, gy, axis);
  }
};

// --- halves of an axis ---
/// The first (0) or the second half of an array's, or a variable's, elements along `axis`: a view
/// of one that is contiguous.
template <class T> T half(const T& whole, int axis, int which) {
  Shape shape = whole.shape();
  shape[axis] /= 2;
  std::int64_t before = 1, rest = 1;
  for (int i = 0; i < shape.ndim(); ++i) (i < axis ? before : rest) *= shape[i];
  T halves = whole.reshape({before, 2, rest});
  T part = halves[std::initializer_list<BasicIndex>{Slice(), which}];
  return part.reshape(shape);
}

class Crelu final : public FunctionNode {
 public:
  explicit Crelu(int axis) : FunctionNode("crelu"), axis_(axis) {}

  Arrays forward(const Arrays& x) override {
    retain_inputs({0});
    Shape shape = x[0].shape();
    shape[axis_] *= 2;
    Array y = xp::empty(shape, x[0].dtype(), x[0].device());
    xp::ElementwiseArgument arguments[] = {x[0]};
    Array parts[] = {half(y, axis_, 0), half(y, axis_, 1)};
    detail::pointwise_into(rows::crelu.row, arguments, parts);
    return {y};
  }
  Variables backward(const Indexes&, const Variables& gy) override {
    Variable former = half(gy[0], axis_, 0), latter = half(gy[0], axis_, 1);
    return {gradient_of(gradients::crelu, get_retained_inputs()[0], former, latter)};
  }

 private:
  int axis_;
};

class Glu final : public FunctionNode {
 public:
  explicit Glu(int axis) : FunctionNode("glu"), axis_(axis) {}

  Arrays forward(const Arrays& x) override {
    retain_inputs({0});
    Array a = half(x[0], axis_, 0), b = half(x[0], axis_, 1);
    xp::ElementwiseArgument arguments[] = {a, b};
    return detail::pointwise(rows::glu.row, arguments);
  }
  Variables backward(const Indexes&, const Variables& gy) override {
    Variable x = get_retained_inputs()[0];
    if (config().enable_backprop) {
      std::vector<DifferentiableValue> given;
      for (const Variable& v : {half(x, axis_, 0), half(x, axis_, 1), gy[0]}) given.emplace_back(v);
      return {concat(gradients_of(gradients::glu, given), axis_)};
    }
    Array gx = xp::empty(x.shape(), x.dtype(), x.device());
    Array a = half(x.array(), axis_, 0), b = half(x.array(), axis_, 1);
    xp::ElementwiseArgument arguments[] = {a, b, gy[0].array()};
    Array parts[] = {half(gx, axis_, 0), half(gx, axis_, 1)};
    detail::pointwise_into(gradients::glu.row, arguments, parts);
    return {constant(gx)};
  }

 private:
  int axis_;
};

/// A parameter of x's axes behind the first one, in a shape that broadcasts with x.
Variable beside(const char* function, const Variable& x, const char* what, const Variable& w) {
  bool fits = w.ndim() < x.ndim();
  for (int i = 0; fits && i < w.ndim(); ++i) fits = w.shape(i) == x.shape(i + 1);
  if (!fits) {
    throw ShapeError(
        fmt::format("{}: {} {} and x {}: the shape of {} must be that of x's axes "
                    "behind the first one, or of the first few of them",
                    function, what, w.shape().str(), x.shape().str(), what));
  }
  Shape shape = Shape::filled(x.ndim(), 1);
  for (int i = 0; i < w.ndim(); ++i) shape[i + 1] = w.shape(i);
  return reshape(w, shape);
}

}  // namespace

Variable relu(const Variable& x) { return unary<Relu>(x); }
Variable sigmoid(const Variable& x) { return differentiable(rows::sigmoid, {x})[0]; }
Variable tanh(const Variable& x) { return differentiable(rows::tanh, {x})[0]; }
Variable softplus(const Variable& x, double beta) {
  return differentiable(rows::softplus, {x}, {beta})[0];
}
Variable leaky_relu(const Variable& x, double slope) {
  return differentiable(rows::leaky_relu, {x}, {slope})[0];
}
Variable elu(const Variable& x, double alpha) { return differentiable(rows::elu, {x}, {alpha})[0]; }
Variable selu(const Variable& x, double alpha, double scale) {
  return differentiable(rows::selu, {x}, {alpha, scale})[0];
}
Variable gelu(const Variable& x) { return differentiable(rows::gelu, {x})[0]; }
Variable silu(const Variable& x) { return differentiable(rows::silu, {x})[0]; }
Variable hard_sigmoid(const Variable& x) { return differentiable(rows::hard_sigmoid, {x})[0]; }
Variable clipped_relu(const Variable& x, double z) {
  return differentiable(rows::clipped_relu, {x}, {z})[0];
}
Variable relu6(const Variable& x) { return clipped_relu(x, 6); }
Variable gelu_tanh(const Variable& x) { return differentiable(rows::gelu_tanh, {x})[0]; }
Variable mish(const Variable& x) { return differentiable(rows::mish, {x})[0]; }
Variable hard_swish(const Variable& x) { return differentiable(rows::hard_swish, {x})[0]; }
Variable swish(const Variable& x, const Variable& beta) {
  return differentiable(rows::swish, {x, beside("swish", x, "beta", beta)})[0];
}
Variable prelu(const Variable& x, const Variable& W) {
  return differentiable(rows::prelu, {x, beside("prelu", x, "W", W)})[0];
}

Variable rrelu(const Variable& x, double l, double u, const RreluOptions& options) {
  if (!(0 <= l && l < u && u < 1)) {
    throw ValueError(fmt::format("rrelu: l {} and u {}, which must be 0 <= l < u < 1", l, u));
  }
  if (options.r && options.r->shape() != x.shape()) {
    throw ShapeError(fmt::format("rrelu: r {} and x {} must have one shape",
                                 options.r->shape().str(), x.shape().str()));
  }
  if (!config().train && !options.return_r) return leaky_relu(x, (l + u) / 2);
  bool drawn = config().train && !options.r;
  if (drawn && dtype_kind(x.dtype()) == 'f' && x.array().is_contiguous() && x.size() > 0) {
    std::int64_t counters = (x.size() - 1) / 4 + 1;  // of four elements each
    return apply<DrawnRrelu>({x}, l, u, xp::random::take(x.device(), counters),
                             options.return_r)[0];
  }
  Array r;
  if (!config().train) {
    r = xp::full(x.shape(), (l + u) / 2, x.dtype(), x.device());
  } else {
    r = options.r ? *options.r : xp::random::uniform(l, u, x.shape(), float32, x.device());
  }
  r = r.astype(x.dtype(), false);
  if (options.return_r) *options.return_r = r;
  return differentiable(rows::rrelu, {x, constant(r)})[0];
}

Variable crelu(const Variable& x, int axis) {
  return apply<Crelu>({x}, normalize_axis("crelu", axis, x.ndim()))[0];
}

Variable glu(const Variable& x, int axis) {
  axis = normalize_axis("glu", axis, x.ndim());
  if (x.shape(axis) % 2 != 0) {
    throw ShapeError(
        fmt::format("glu: x {} has no two halves along axis {}", x.shape().str(), axis));
  }
  return apply<Glu>({x}, axis)[0];
}

Variable maxout(const Variable& x, int pool_size, int axis) {
  if (pool_size < 1) throw ValueError(fmt::format("maxout: a pool_size of {}", pool_size));
  axis = normalize_axis("maxout", axis, x.ndim());
  if (x.shape(axis) % pool_size != 0) {
    throw ShapeError(fmt::format("maxout: x {}, whose axis {} a pool_size of {} does not divide",
                                 x.shape().str(), axis, pool_size));
  }
  Shape shape = x.shape();
  shape[axis] /= pool_size;
  shape.insert(axis + 1, pool_size);
  return max(reshape(x, shape), axis + 1);
}

Variable softmax(const Variable& x, int axis) { return unary<Softmax>(x, axis); }
Variable log_softmax(const Variable& x, int axis) { return unary<LogSoftmax>(x, axis); }

}  // namespace rensa::functions

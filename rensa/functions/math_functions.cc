// Arithmetic and elementary functions: forward and backward.
#include "rensa/functions/math_functions.h"

#include "rensa/array/ufuncs/trigonometric.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/differentiable.h"
#include "rensa/functions/node_templates.h"

namespace rensa::functions {

namespace {

std::vector<DifferentiableValue> values(std::initializer_list<Variable> variables) {
  return std::vector<DifferentiableValue>(variables.begin(), variables.end());
}

// --- two operands ---
struct Add {
  static constexpr const char* name = "add";
  static constexpr Keep keep = Keep::nothing;
  static Array forward(const Array& a, const Array& b) { return a + b; }
  static Variable backward(int, const Variables&, const Variable& gy) { return gy; }
};

struct Subtract {
  static constexpr const char* name = "subtract";
  static constexpr Keep keep = Keep::nothing;
  static Array forward(const Array& a, const Array& b) { return a - b; }
  static Variable backward(int i, const Variables&, const Variable& gy) {
    return i == 0 ? gy : -gy;
  }
};

struct Multiply {
  static constexpr const char* name = "multiply";
  static constexpr Keep keep = Keep::inputs;
  static Array forward(const Array& a, const Array& b) { return a * b; }
  static Variable backward(int i, const Variables& x, const Variable& gy) {
    return gy * x[static_cast<std::size_t>(1 - i)];
  }
  static Variables both(const Variables& x, const Variable& gy) {
    if (x[0].shape() != x[1].shape()) return {};
    return gradients_of(gradients::multiply, values({x[0], x[1], gy}));
  }
};

struct Divide {
  static constexpr const char* name = "divide";
  static constexpr Keep keep = Keep::inputs;
  static Array forward(const Array& a, const Array& b) { return a / b; }
  static Variable backward(int i, const Variables& x, const Variable& gy) {
    return i == 0 ? gy / x[1] : both(x, gy)[1];
  }
  static Variables both(const Variables& x, const Variable& gy) {
    return gradients_of(gradients::divide, values({x[0], x[1], gy}));
  }
};

struct Maximum {
  static constexpr const char* name = "maximum";
  static constexpr Keep keep = Keep::inputs;
  static Array forward(const Array& a, const Array& b) { return xp::maximum(a, b); }
  static Variable backward(int i, const Variables& x, const Variable& gy) {
    return both(x, gy)[static_cast<std::size_t>(i)];
  }
  static Variables both(const Variables& x, const Variable& gy) {
    return gradients_of(gradients::maximum, values({x[0], x[1], gy}));
  }
};

struct Minimum {
  static constexpr const char* name = "minimum";
  static constexpr Keep keep = Keep::inputs;
  static Array forward(const Array& a, const Array& b) { return xp::minimum(a, b); }
  static Variable backward(int i, const Variables& x, const Variable& gy) {
    return both(x, gy)[static_cast<std::size_t>(i)];
  }
  static Variables both(const Variables& x, const Variable& gy) {
    return gradients_of(gradients::minimum, values({x[0], x[1], gy}));
  }
};

// --- an operand and a number ---
struct AddScalar {
  static constexpr const char* name = "add";
  static constexpr Keep keep = Keep::nothing;
  static Array forward(const Array& x, Scalar c) { return x + c; }
  static Variable backward(const Variable&, const Variable& gy, Scalar) { return gy; }
};

struct SubtractScalar {
  static constexpr const char* name = "subtract";
  static constexpr Keep keep = Keep::nothing;
  static Array forward(const Array& x, Scalar c) { return x - c; }
  static Variable backward(const Variable&, const Variable& gy, Scalar) { return gy; }
};

struct SubtractFromScalar {
  static constexpr const char* name = "subtract";
  static constexpr Keep keep = Keep::nothing;
  static Array forward(const Array& x, Scalar c) { return c - x; }
  static Variable backward(const Variable&, const Variable& gy, Scalar) { return -gy; }
};

struct MultiplyScalar {
  static constexpr const char* name = "multiply";
  static constexpr Keep keep = Keep::nothing;
  static Array forward(const Array& x, Scalar c) { return x * c; }
  static Variable backward(const Variable&, const Variable& gy, Scalar c) { return gy * c; }
};

struct DivideScalar {
  static constexpr const char* name = "divide";
  static constexpr Keep keep = Keep::nothing;
  static Array forward(const Array& x, Scalar c) { return x / c; }
  static Variable backward(const Variable&, const Variable& gy, Scalar c) { return gy / c; }
};

struct DivideIntoScalar {
  static constexpr const char* name = "divide";
  static constexpr Keep keep = Keep::inputs;
  static Array forward(const Array& x, Scalar c) { return c / x; }
  static Variable backward(const Variable& x, const Variable& gy, Scalar c) {
    return gradient_of(gradients::divide_into, x, gy, c);
  }
};

struct Pow {
  static constexpr const char* name = "pow";
  static constexpr Keep keep = Keep::inputs;
  static Array forward(const Array& x, double c) { return xp::power(x, c); }
  static Variable backward(const Variable& x, const Variable& gy, double c) {
    return gradient_of(gradients::power, x, gy, c);
  }
};

// --- one operand ---
struct Negative {
  static constexpr const char* name = "negative";
  static constexpr Keep keep = Keep::nothing;
  static Array forward(const Array& x) { return -x; }
  static Variable backward(const Variable&, const Variable& gy) { return -gy; }
};

struct Square {
  static constexpr const char* name = "square";
  static constexpr Keep keep = Keep::inputs;
  static Array forward(const Array& x) { return xp::square(x); }
  static Variable backward(const Variable& x, const Variable& gy) {
    return gradient_of(gradients::square, x, gy);
  }
};

struct Sqrt {
  static constexpr const char* name = "sqrt";
  static constexpr Keep keep = Keep::output;
  static Array forward(const Array& x) { return xp::sqrt(x); }
  static Variable backward(const Variable& y, const Variable& gy) {
    return gradient_of(gradients::sqrt, y, gy);
  }
};

struct Exp {
  static constexpr const char* name = "exp";
  static constexpr Keep keep = Keep::output;
  static Array forward(const Array& x) { return xp::exp(x); }
  static Variable backward(const Variable& y, const Variable& gy) { return gy * y; }
};

struct Log {
  static constexpr const char* name = "log";
  static constexpr Keep keep = Keep::inputs;
  static Array forward(const Array& x) { return xp::log(x); }
  static Variable backward(const Variable& x, const Variable& gy) { return gy / x; }
};

struct Sin {
  static constexpr const char* name = "sin";
  static constexpr Keep keep = Keep::inputs;
  static Array forward(const Array& x) { return xp::sin(x); }
  static Variable backward(const Variable& x, const Variable& gy) {
    return gradient_of(gradients::sin, x, gy);
  }
};

struct Cos {
  static constexpr const char* name = "cos";
  static constexpr Keep keep = Keep::inputs;
  static Array forward(const Array& x) { return xp::cos(x); }
  static Variable backward(const Variable& x, const Variable& gy) {
    return gradient_of(gradients::cos, x, gy);
  }
};

struct Absolute {
  static constexpr const char* name = "absolute";
  static constexpr Keep keep = Keep::inputs;
  static Array forward(const Array& x) { return xp::absolute(x); }
  static Variable backward(const Variable& x, const Variable& gy) {
    return gradient_of(gradients::absolute, x, gy);
  }
};

// --- sums and products ---
/// A sum, or a mean, over some axes.
class Sum final : public FunctionNode {
 public:
  Sum(Axes axis, bool keepdims, bool mean)
      : FunctionNode(mean ? "mean" : "sum"), axis_(axis), keepdims_(keepdims), mean_(mean) {}

  Arrays forward(const Arrays& x) override {
    return {mean_ ? xp::mean(x[0], axis_, keepdims_) : xp::sum(x[0], axis_, keepdims_)};
  }
  Variables backward(const Indexes&, const Variables& gy) override {
    const VariableNode& x = *inputs()[0];
    unsigned reduced = axis_.mask(name(), x.shape.ndim());
    Shape kept = x.shape;
    std::int64_t count = 1;
    for (int i = 0; i < kept.ndim(); ++i) {
      if (!(reduced >> i & 1u)) continue;
      count *= kept[i];
      kept[i] = 1;
    }
    Variable g = reshape(gy[0], kept);
    if (mean_) g = g / static_cast<double>(count);
    return {broadcast_to(cast(g, x.dtype), x.shape)};
  }

 private:
  Axes axis_;
  bool keepdims_, mean_;
};

Array swapped(const Array& a, bool swap) {
  return swap ? a.swapaxes(a.ndim() - 2, a.ndim() - 1) : a;
}

/// Of operands of two axes or more.
class MatMul final : public FunctionNode {
 public:
  MatMul(bool transa, bool transb) : FunctionNode("matmul"), transa_(transa), transb_(transb) {}

  Arrays forward(const Arrays& x) override {
    retain_inputs({0, 1});
    return {xp::matmul(swapped(x[0], transa_), swapped(x[1], transb_))};
  }
  Variables backward(const Indexes& targets, const Variables& gy) override {
    Variables x = get_retained_inputs(), gx;
    const Variable &a = x[0], &b = x[1], &g = gy[0];
    for (int i : targets) {
      Variable product;
      if (i == 0) product = transa_ ? matmul(b, g, transb_, true) : matmul(g, b, false, !transb_);
      else product = transb_ ? matmul(g, a, true, transa_) : matmul(a, g, !transa_, false);
      gx.push_back(fit(product, *inputs()[static_cast<std::size_t>(i)]));
    }
    return gx;
  }

 private:
  bool transa_, transb_;
};

}  // namespace

Variable add(const Variable& a, const Variable& b) { return binary<Add>(a, b); }
Variable subtract(const Variable& a, const Variable& b) { return binary<Subtract>(a, b); }
Variable multiply(const Variable& a, const Variable& b) { return binary<Multiply>(a, b); }
Variable divide(const Variable& a, const Variable& b) { return binary<Divide>(a, b); }
Variable maximum(const Variable& a, const Variable& b) { return binary<Maximum>(a, b); }
Variable minimum(const Variable& a, const Variable& b) { return binary<Minimum>(a, b); }

Variable pow(const Variable& x, double exponent) { return unary<Pow>(x, exponent); }
Variable negative(const Variable& x) { return unary<Negative>(x); }
Variable square(const Variable& x) { return unary<Square>(x); }
Variable sqrt(const Variable& x) { return unary<Sqrt>(x); }
Variable exp(const Variable& x) { return unary<Exp>(x); }
Variable log(const Variable& x) { return unary<Log>(x); }
Variable sin(const Variable& x) { return unary<Sin>(x); }
Variable cos(const Variable& x) { return unary<Cos>(x); }
Variable erf(const Variable& x) { return differentiable(rows::erf, {x})[0]; }
Variable absolute(const Variable& x) { return unary<Absolute>(x); }

Variable sum(const Variable& x, Axes axis, bool keepdims) {
  return apply<Sum>({x}, axis, keepdims, false)[0];
}

Variable mean(const Variable& x, Axes axis, bool keepdims) {
  return apply<Sum>({x}, axis, keepdims, true)[0];
}

// A vector is a row on the left and a column on the right, and leaves no axis behind.
Variable matmul(const Variable& a, const Variable& b, bool transa, bool transb) {
  if (a.ndim() != 1 && b.ndim() != 1) return apply<MatMul>({a, b}, transa, transb)[0];
  if (a.ndim() == 0 || b.ndim() == 0) return constant(xp::matmul(a.array(), b.array()));  // throws
  Variable left = a.ndim() == 1 ? reshape(a, {1, -1}) : a;
  Variable right = b.ndim() == 1 ? reshape(b, {-1, 1}) : b;
  Variable y = apply<MatMul>({left, right}, transa && a.ndim() > 1, transb && b.ndim() > 1)[0];
  Shape shape = y.shape();
  if (b.ndim() == 1) shape.erase(shape.ndim() - 1);
  if (a.ndim() == 1) shape.erase(shape.ndim() - (b.ndim() == 1 ? 1 : 2));
  return reshape(y, shape);
}

}  // namespace rensa::functions

namespace rensa {

namespace operators {

Variable add(const Variable& a, const Variable& b) { return F::add(a, b); }
Variable subtract(const Variable& a, const Variable& b) { return F::subtract(a, b); }
Variable multiply(const Variable& a, const Variable& b) { return F::multiply(a, b); }
Variable divide(const Variable& a, const Variable& b) { return F::divide(a, b); }
Variable negative(const Variable& a) { return F::negative(a); }

Variable add(const Variable& a, Scalar b) { return F::unary<F::AddScalar>(a, b); }
Variable add(Scalar a, const Variable& b) { return F::unary<F::AddScalar>(b, a); }
Variable subtract(const Variable& a, Scalar b) { return F::unary<F::SubtractScalar>(a, b); }
Variable subtract(Scalar a, const Variable& b) { return F::unary<F::SubtractFromScalar>(b, a); }
Variable multiply(const Variable& a, Scalar b) { return F::unary<F::MultiplyScalar>(a, b); }
Variable multiply(Scalar a, const Variable& b) { return F::unary<F::MultiplyScalar>(b, a); }
Variable divide(const Variable& a, Scalar b) { return F::unary<F::DivideScalar>(a, b); }
Variable divide(Scalar a, const Variable& b) { return F::unary<F::DivideIntoScalar>(b, a); }

}  // namespace operators

Variable Variable::sum(Axes axis, bool keepdims) const { return F::sum(*this, axis, keepdims); }
Variable Variable::mean(Axes axis, bool keepdims) const { return F::mean(*this, axis, keepdims); }

}  // namespace rensa

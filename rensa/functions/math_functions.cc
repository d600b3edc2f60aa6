// Arithmetic and elementary functions: forward and backward.
#include "rensa/functions/math_functions.h"

#include <fmt/format.h>

#include <limits>
#include <string_view>

#include "rensa/array/internal.h"
#include "rensa/array/ufuncs/ufuncs.h"
#include "rensa/core/error.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/differentiable_rows.h"
#include "rensa/functions/node_templates.h"
#include "rensa/functions/products_internal.h"

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
/// Complex numbers are not told.
std::optional<FunctionAttributes> of_number(const Scalar& number, bool comes_first) {
  if (number.kind() == 'c') return std::nullopt;
  return FunctionAttributes{.integers = {{"number_first", comes_first}},
                            .numbers = {{"number", number.real()}}};
}

struct AddScalar {
  static constexpr const char* name = "add";
  static constexpr Keep keep = Keep::nothing;
  static Array forward(const Array& x, Scalar c) { return x + c; }
  static auto attributes(Scalar c) { return of_number(c, false); }
  static Variable backward(const Variable&, const Variable& gy, Scalar) { return gy; }
};

struct SubtractScalar {
  static constexpr const char* name = "subtract";
  static constexpr Keep keep = Keep::nothing;
  static Array forward(const Array& x, Scalar c) { return x - c; }
  static auto attributes(Scalar c) { return of_number(c, false); }
  static Variable backward(const Variable&, const Variable& gy, Scalar) { return gy; }
};

struct SubtractFromScalar {
  static constexpr const char* name = "subtract";
  static constexpr Keep keep = Keep::nothing;
  static Array forward(const Array& x, Scalar c) { return c - x; }
  static auto attributes(Scalar c) { return of_number(c, true); }
  static Variable backward(const Variable&, const Variable& gy, Scalar) { return -gy; }
};

struct MultiplyScalar {
  static constexpr const char* name = "multiply";
  static constexpr Keep keep = Keep::nothing;
  static Array forward(const Array& x, Scalar c) { return x * c; }
  static auto attributes(Scalar c) { return of_number(c, false); }
  static Variable backward(const Variable&, const Variable& gy, Scalar c) { return gy * c; }
};

struct DivideScalar {
  static constexpr const char* name = "divide";
  static constexpr Keep keep = Keep::nothing;
  static Array forward(const Array& x, Scalar c) { return x / c; }
  static auto attributes(Scalar c) { return of_number(c, false); }
  static Variable backward(const Variable&, const Variable& gy, Scalar c) { return gy / c; }
};

struct DivideIntoScalar {
  static constexpr const char* name = "divide";
  static constexpr Keep keep = Keep::inputs;
  static Array forward(const Array& x, Scalar c) { return c / x; }
  static auto attributes(Scalar c) { return of_number(c, true); }
  static Variable backward(const Variable& x, const Variable& gy, Scalar c) {
    return gradient_of(gradients::divide_into, x, gy, c);
  }
};

struct Pow {
  static constexpr const char* name = "pow";
  static constexpr Keep keep = Keep::inputs;
  static Array forward(const Array& x, double c) { return xp::power(x, c); }
  static auto attributes(double c) { return of_number(c, false); }
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

/// A function that a ufunc computes and whose gradient is a row.
struct Elementary {
  const xp::UnaryUfunc& forward;
  const Gradient& gradient;  // of the input or the output, as `keep` says, and of gy
  Keep keep;
};

class ElementaryNode final : public FunctionNode {
 public:
  ElementaryNode(const char* name, const Elementary& function)
      : FunctionNode(name), function_(function) {}

  Arrays forward(const Arrays& x) override {
    if (function_.keep == Keep::inputs) retain_inputs({0});
    else retain_outputs({0});
    return {function_.forward(x[0])};
  }
  Variables backward(const Indexes&, const Variables& gy) override {
    Variables kept =
        function_.keep == Keep::inputs ? get_retained_inputs() : get_retained_outputs();
    return {cast(gradient_of(function_.gradient, kept[0], gy[0]), inputs()[0]->dtype)};
  }
  std::optional<FunctionAttributes> attributes() const override { return FunctionAttributes(); }

 private:
  Elementary function_;
};

struct Arctan2 {
  static constexpr const char* name = "arctan2";
  static constexpr Keep keep = Keep::inputs;
  static Array forward(const Array& a, const Array& b) { return xp::arctan2(a, b); }
  static Variable backward(int i, const Variables& x, const Variable& gy) {
    return both(x, gy)[static_cast<std::size_t>(i)];
  }
  static Variables both(const Variables& x, const Variable& gy) {
    return gradients_of(gradients::arctan2, values({x[0], x[1], gy}));
  }
};

struct Logaddexp {
  static constexpr const char* name = "logaddexp";
  static constexpr Keep keep = Keep::inputs;
  static Array forward(const Array& a, const Array& b) { return xp::logaddexp(a, b); }
  static Variable backward(int i, const Variables& x, const Variable& gy) {
    return both(x, gy)[static_cast<std::size_t>(i)];
  }
  static Variables both(const Variables& x, const Variable& gy) {
    return gradients_of(gradients::logaddexp, values({x[0], x[1], gy}));
  }
};

struct Fmod {
  static constexpr const char* name = "fmod";
  static constexpr Keep keep = Keep::inputs;
  static Array forward(const Array& a, const Array& b) { return xp::fmod(a, b); }
  static Variable backward(int i, const Variables& x, const Variable& gy) {
    return i == 0 ? gy : both(x, gy)[1];
  }
  static Variables both(const Variables& x, const Variable& gy) {
    return gradients_of(gradients::fmod, values({x[0], x[1], gy}));
  }
};

struct Clip {
  static constexpr const char* name = "clip";
  static constexpr Keep keep = Keep::inputs;
  static Array forward(const Array& x, double least, double most) {
    return xp::clip(x, least, most);
  }
  static Variable backward(const Variable& x, const Variable& gy, double least, double most) {
    return gradient_of(gradients::clip, x, gy, least, most);
  }
};

// --- products ---
Array swapped(const Array& a, bool swap) {
  return swap ? a.swapaxes(a.ndim() - 2, a.ndim() - 1) : a;
}

/// Of operands of two axes or more.
class MatMul final : public FunctionNode {
 public:
  MatMul(bool transa, bool transb, bool gate_follows = false)
      : FunctionNode("matmul"), transa_(transa), transb_(transb), gate_follows_(gate_follows) {}

  Arrays forward(const Arrays& x) override {
    retain_inputs({0, 1});
    if (gate_follows_) return {rensa::detail::matmul_before_gate(x[0], x[1])};
    return {xp::matmul(swapped(x[0], transa_), swapped(x[1], transb_))};
  }
  std::int64_t multiply_adds(const Arrays& x, const Arrays& y) const override {
    return y[0].size() * x[0].shape(x[0].ndim() - (transa_ ? 2 : 1));
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
  std::optional<FunctionAttributes> attributes() const override {
    return FunctionAttributes{.integers = {{"transa", transa_}, {"transb", transb_}}};
  }

 private:
  bool transa_, transb_;
  bool gate_follows_;  // Matmul::gate_follows; of matrices as they are
};

/// y with axes of extent 1 behind it, so that it broadcasts to x from `axis` on.
Variable standing_at(const char* function, const Variable& x, const Variable& y, int axis) {
  int place = axis < 0 ? axis + x.ndim() : axis;
  bool fits = place >= 0 && place + y.ndim() <= x.ndim();
  for (int i = 0; fits && i < y.ndim(); ++i) fits = y.shape(i) == x.shape(place + i);
  if (!fits) {
    throw ShapeError(fmt::format("{}: y {} for axis {} of x {}: its shape is that of x from there",
                                 function, y.array().view().describe(), axis,
                                 x.array().view().describe()));
  }
  Shape shape = y.shape();
  for (int i = place + y.ndim(); i < x.ndim(); ++i) shape.push_back(1);
  return reshape(y, shape);
}

}  // namespace

Variable scale(const Variable& x, const Variable& y, int axis) {
  return x * standing_at("scale", x, y, axis);
}
Variable bias(const Variable& x, const Variable& y, int axis) {
  return x + standing_at("bias", x, y, axis);
}

Variable add(const Variable& a, const Variable& b) { return binary<Add>(a, b); }
Variable subtract(const Variable& a, const Variable& b) { return binary<Subtract>(a, b); }
Variable multiply(const Variable& a, const Variable& b) { return binary<Multiply>(a, b); }
Variable divide(const Variable& a, const Variable& b) { return binary<Divide>(a, b); }
Variable maximum(const Variable& a, const Variable& b) { return binary<Maximum>(a, b); }
Variable minimum(const Variable& a, const Variable& b) { return binary<Minimum>(a, b); }

Variable pow(const Variable& x, double exponent) { return unary<Pow>(x, exponent); }
Variable negative(const Variable& x) { return unary<Negative>(x); }
Variable exp(const Variable& x) { return unary<Exp>(x); }
Variable log(const Variable& x) { return unary<Log>(x); }
#define RENSA_ELEMENTARY(name, kept)                                  \
  Variable name(const Variable& x) {                                  \
    const Elementary function{xp::name, gradients::name, Keep::kept}; \
    return apply<ElementaryNode>({x}, #name, function)[0];            \
  }
RENSA_ELEMENTARY(square, inputs)
RENSA_ELEMENTARY(sqrt, output)
RENSA_ELEMENTARY(rsqrt, output)
RENSA_ELEMENTARY(exp2, output)
RENSA_ELEMENTARY(expm1, output)
RENSA_ELEMENTARY(log2, inputs)
RENSA_ELEMENTARY(log10, inputs)
RENSA_ELEMENTARY(log1p, inputs)
RENSA_ELEMENTARY(sin, inputs)
RENSA_ELEMENTARY(cos, inputs)
RENSA_ELEMENTARY(tan, output)
RENSA_ELEMENTARY(arcsin, inputs)
RENSA_ELEMENTARY(arccos, inputs)
RENSA_ELEMENTARY(arctan, inputs)
RENSA_ELEMENTARY(sinh, inputs)
RENSA_ELEMENTARY(cosh, inputs)
RENSA_ELEMENTARY(arcsinh, inputs)
RENSA_ELEMENTARY(arccosh, inputs)
RENSA_ELEMENTARY(arctanh, inputs)
RENSA_ELEMENTARY(absolute, inputs)
#undef RENSA_ELEMENTARY

Variable erf(const Variable& x) { return differentiable(rows::erf, {x})[0]; }
Variable arctan2(const Variable& a, const Variable& b) { return binary<Arctan2>(a, b); }
Variable logaddexp(const Variable& a, const Variable& b) { return binary<Logaddexp>(a, b); }
Variable fmod(const Variable& x, const Variable& divisor) { return binary<Fmod>(x, divisor); }
Variable linear_interpolate(const Variable& p, const Variable& x, const Variable& y) {
  return differentiable(rows::linear_interpolate, {p, x, y})[0];
}

Variable add(const Variables& xs) {
  if (xs.empty()) throw ValueError("add: no variables");
  Variable sum = xs[0];
  for (std::size_t k = 1; k < xs.size(); ++k) sum = add(sum, xs[k]);
  return sum;
}

Variable clip(const Variable& x, std::optional<double> x_min, std::optional<double> x_max) {
  if (!x_min && !x_max) throw ValueError("clip: neither x_min nor x_max is given");
  double least = x_min.value_or(-std::numeric_limits<double>::infinity());
  double most = x_max.value_or(std::numeric_limits<double>::infinity());
  if (least > most) {
    throw ValueError(fmt::format("clip: x_min {} is greater than x_max {}", least, most));
  }
  return unary<Clip>(x, least, most);
}

Variable sign(const Variable& x) { return constant(xp::sign(x.array())); }
Variable floor(const Variable& x) { return constant(xp::floor(x.array())); }
Variable ceil(const Variable& x) { return constant(xp::ceil(x.array())); }
Variable fix(const Variable& x) { return constant(xp::trunc(x.array())); }
Variable identity(const Variable& x) { return x; }

Variable matmul_as_gradient(const VariableNode& x, const Variable& a, const Variable& b) {
  bool gate_follows = x.creator && std::string_view(x.creator->name()) == "relu";
  return apply<MatMul>({a, b}, false, false, gate_follows)[0];
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

Variable Variable::clip(std::optional<double> x_min, std::optional<double> x_max) const {
  return F::clip(*this, x_min, x_max);
}

}  // namespace rensa

// Products of tensors, factorizations, Fourier transforms: forward and backward.
#include "rensa/functions/linalg_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "rensa/array/fft.h"
#include "rensa/array/linalg.h"
#include "rensa/array/linalg_subscripts.h"
#include "rensa/array/math.h"
#include "rensa/autograd/autocast.h"
#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/math_functions.h"

namespace rensa::functions {

using rensa::detail::axis_of;
using rensa::detail::holds;
using rensa::detail::Label;
using rensa::detail::Labels;
using rensa::detail::Subscripts;

namespace {

// --- einsum ---
class Einsum final : public FunctionNode {
 public:
  explicit Einsum(Subscripts subscripts)
      : FunctionNode("einsum"), subscripts_(std::move(subscripts)) {}

  Arrays forward(const Arrays& x) override {
    Indexes all;
    for (std::size_t k = 0; k < x.size(); ++k) all.push_back(static_cast<int>(k));
    retain_inputs(all);
    return {rensa::detail::einsum(subscripts_, x)};
  }
  /// Of two operands: one for each combination of places along all labels. More are multiplied two
  /// by two, by what xp::einsum chooses: counted as if all at once.
  std::int64_t multiply_adds(const Arrays& x, const Arrays&) const override {
    if (x.size() < 2) return 0;
    std::map<Label, std::int64_t> extents;
    for (std::size_t k = 0; k < x.size(); ++k) {
      for (int i = 0; i < x[k].ndim(); ++i) {
        std::int64_t& extent = extents[subscripts_.operands[k][static_cast<std::size_t>(i)]];
        extent = std::max(extent, x[k].shape(i));
      }
    }
    std::int64_t count = 1;
    for (const auto& [label, extent] : extents) count *= extent;
    return count;
  }
  Variables backward(const Indexes& targets, const Variables& gy) override {
    Variables x = get_retained_inputs(), gx;
    for (int i : targets) {
      gx.push_back(cast(gradient_of_operand(static_cast<std::size_t>(i), x, gy[0]),
                        x[static_cast<std::size_t>(i)].dtype()));
    }
    return gx;
  }

 private:
  // The sum of products of gy and the other operands, also over what an extent of 1 stood for;
  // where nothing else has an axis of this one the gradient is the same all along it, and off a
  // diagonal it is 0.
  Variable gradient_of_operand(std::size_t i, const Variables& x, const Variable& gy) const {
    const Labels& labels = subscripts_.operands[i];
    const Shape& shape = x[i].shape();
    Subscripts product{{subscripts_.result}, {}, subscripts_.text};
    Variables factors{gy};
    for (std::size_t k = 0; k < x.size(); ++k) {
      if (k == i) continue;
      product.operands.push_back(subscripts_.operands[k]);
      factors.push_back(x[k]);
    }
    for (int axis = 0; axis < shape.ndim(); ++axis) {
      Label label = labels[static_cast<std::size_t>(axis)];
      bool known = std::any_of(product.operands.begin(), product.operands.end(),
                               [&](const Labels& others) { return holds(others, label); });
      bool first = axis == axis_of(labels, label);
      if (first && known && shape[axis] != 1) product.result.push_back(label);
    }
    Variable g = rensa::apply<Einsum>(factors, product)[0];
    Shape beside = Shape::filled(shape.ndim(), 1);
    for (int axis = 0; axis < g.ndim(); ++axis) {
      beside[axis_of(labels, product.result[static_cast<std::size_t>(axis)])] = g.shape(axis);
    }
    g = reshape(g, beside);
    for (int axis = 0; axis < shape.ndim(); ++axis) {
      int first = axis_of(labels, labels[static_cast<std::size_t>(axis)]);
      if (first == axis) continue;
      Shape diagonal = Shape::filled(shape.ndim(), 1);
      diagonal[axis] = diagonal[first] = shape[axis];
      g = g * constant(xp::eye(shape[axis], g.dtype(), g.device()).reshape(diagonal));
    }
    return broadcast_to(g, shape);
  }

  Subscripts subscripts_;
};

// --- factorizations ---
Variable matrix_transpose(const Variable& x) { return swapaxes(x, -2, -1); }

class Inv final : public FunctionNode {
 public:
  Inv() : FunctionNode("inv") {}
  Arrays forward(const Arrays& x) override {
    retain_outputs({0});
    return {xp::linalg::inv(x[0])};
  }
  Variables backward(const Indexes&, const Variables& gy) override {
    Variable y = get_retained_outputs()[0];
    return {-matmul(matmul(y, gy[0], true), y, false, true)};
  }
};

class Det final : public FunctionNode {
 public:
  Det() : FunctionNode("det") {}
  Arrays forward(const Arrays& x) override {
    retain_inputs({0});
    retain_outputs({0});
    return {xp::linalg::det(x[0])};
  }
  Variables backward(const Indexes&, const Variables& gy) override {
    Variable x = get_retained_inputs()[0], g = gy[0] * get_retained_outputs()[0];
    return {expand_dims(expand_dims(g, -1), -1) * matrix_transpose(inv(x))};
  }
};

class Cholesky final : public FunctionNode {
 public:
  Cholesky() : FunctionNode("cholesky") {}
  Arrays forward(const Arrays& x) override {
    retain_outputs({0});
    return {xp::linalg::cholesky(x[0])};
  }
  Variables backward(const Indexes&, const Variables& gy) override {
    Variable y = get_retained_outputs()[0], y_inv = inv(y);
    std::int64_t n = y.shape(-1);
    Array half = xp::tri(n, y.dtype(), y.device()) - xp::eye(n, y.dtype(), y.device()) * 0.5;
    Variable phi = constant(half) * matmul(y, gy[0], true);
    Variable s = matmul(matmul(y_inv, phi, true), y_inv);
    return {(s + matrix_transpose(s)) * 0.5};
  }
};

// --- Fourier transforms ---
class Fft final : public FunctionNode {
 public:
  explicit Fft(bool inverse) : FunctionNode(inverse ? "ifft" : "fft"), inverse_(inverse) {}
  Arrays forward(const Arrays& x) override {
    Dtype dtype = x[0].dtype();
    Dtype complex = dtype == Dtype::float64 ? Dtype::complex128 : Dtype::complex64;
    Array z = xp::empty(x[0].shape(), complex, x[0].device());
    z.real().assign(x[0]);
    z.imag().assign(x[1]);
    z = inverse_ ? xp::fft::ifft(z) : xp::fft::fft(z);
    return {z.real().astype(dtype), z.imag().astype(dtype)};
  }
  // Transposed the transform is itself, of the parts exchanged.
  Variables backward(const Indexes& targets, const Variables& gy) override {
    const VariableNode& x = *inputs()[0];
    Variables g = gy;
    for (Variable& part : g) {
      if (!part.defined()) part = constant(xp::zeros(x.shape, x.dtype, x.device));
    }
    Variables gx = rensa::apply<Fft>({g[1], g[0]}, inverse_), wanted;
    for (int i : targets) wanted.push_back(gx[static_cast<std::size_t>(1 - i)]);
    return wanted;
  }

 private:
  bool inverse_;
};

std::pair<Variable, Variable> transform(const Variables& given, bool inverse) {
  const char* name = inverse ? "ifft" : "fft";
  Variables parts = autograd::autocast(name, given);
  const Variable &real = parts[0], &imag = parts[1];
  std::string text = fmt::format("{}: a real part {} and an imaginary part {}", name,
                                 real.array().view().describe(), imag.array().view().describe());
  if (real.shape() != imag.shape()) throw ShapeError(text + ": they have one shape");
  if (real.dtype() != imag.dtype() || dtype_kind(real.dtype()) != 'f') {
    throw DtypeError(text + ": they have one floating dtype");
  }
  Variables y = apply<Fft>({real, imag}, inverse);
  return {y[0], y[1]};
}

}  // namespace

Variable batch_matmul(const Variable& a, const Variable& b, bool transa, bool transb) {
  Variable left = a.ndim() == 2 ? expand_dims(a, 2) : a;
  Variable right = b.ndim() == 2 ? expand_dims(b, 2) : b;
  if (left.ndim() != 3 || right.ndim() != 3) {
    throw ShapeError(fmt::format("batch_matmul: {} and {} have to be batches (n, k) or (n, k, m)",
                                 a.array().view().describe(), b.array().view().describe()));
  }
  return matmul(left, right, transa, transb);
}

Variable tensordot(const Variable& a, const Variable& b, int axes) {
  if (axes < 0 || axes > a.ndim() || axes > b.ndim()) {
    throw ValueError(fmt::format("tensordot: {} axes of {} and {}", axes,
                                 a.array().view().describe(), b.array().view().describe()));
  }
  Shape a_axes, b_axes;
  for (int i = 0; i < axes; ++i) {
    a_axes.push_back(a.ndim() - axes + i);
    b_axes.push_back(i);
  }
  return tensordot(a, b, a_axes, b_axes);
}

Variable tensordot(const Variable& a, const Variable& b, const Shape& a_axes, const Shape& b_axes) {
  bool fits = a_axes.ndim() == b_axes.ndim();
  for (int i = 0; fits && i < a_axes.ndim(); ++i) {
    fits = a.shape(static_cast<int>(a_axes[i])) == b.shape(static_cast<int>(b_axes[i]));
  }
  if (!fits) {
    throw ShapeError(fmt::format("tensordot: axes {} of {} and {} of {} are not alike",
                                 a_axes.str(), a.array().view().describe(), b_axes.str(),
                                 b.array().view().describe()));
  }
  // Labels: those of b that are summed are those of a.
  Labels left(static_cast<std::size_t>(a.ndim())), right(static_cast<std::size_t>(b.ndim()));
  std::iota(left.begin(), left.end(), 0);
  std::iota(right.begin(), right.end(), a.ndim());
  for (int i = 0; i < a_axes.ndim(); ++i) {
    int from = normalize_axis("tensordot", a_axes[i], a.ndim());
    int to = normalize_axis("tensordot", b_axes[i], b.ndim());
    right[static_cast<std::size_t>(to)] = left[static_cast<std::size_t>(from)];
  }
  Labels result;
  auto not_in = [](const Labels& other) {
    return [&](Label label) { return !holds(other, label); };
  };
  std::copy_if(left.begin(), left.end(), std::back_inserter(result), not_in(right));
  std::copy_if(right.begin(), right.end(), std::back_inserter(result), not_in(left));
  return apply<Einsum>({a, b}, Subscripts{{left, right}, result, "tensordot"})[0];
}

Variable einsum(std::string_view text, const Variables& operands) {
  Arrays arrays;
  for (const Variable& operand : operands) arrays.push_back(operand.array());
  Subscripts subscripts = rensa::detail::parse_subscripts(text, arrays);
  return apply<Einsum>(operands, subscripts)[0];
}

Variable inv(const Variable& a) { return apply<Inv>({a})[0]; }
Variable batch_inv(const Variable& a) { return inv(a); }
Variable det(const Variable& a) { return apply<Det>({a})[0]; }
Variable batch_det(const Variable& a) { return det(a); }
Variable cholesky(const Variable& a) { return apply<Cholesky>({a})[0]; }

std::pair<Variable, Variable> fft(const Variable& real, const Variable& imag) {
  return transform({real, imag}, false);
}
std::pair<Variable, Variable> ifft(const Variable& real, const Variable& imag) {
  return transform({real, imag}, true);
}

}  // namespace rensa::functions

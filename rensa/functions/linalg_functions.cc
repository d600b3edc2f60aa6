// Products of tensors, factorizations, Fourier transforms: forward and backward.
#include "rensa/functions/linalg_functions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "rensa/array/fft.h"
#include "rensa/array/linalg.h"
#include "rensa/array/math.h"
#include "rensa/autograd/autocast.h"
#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/math_functions.h"

namespace rensa::functions {

namespace {

// --- einsum ---
/// Subscripts without "...": a label for each axis of each operand and of the result.
struct Subscripts {
  std::vector<std::string> operands;
  std::string result;
  std::string str() const { return fmt::format("{}->{}", fmt::join(operands, ","), result); }
};

bool has(std::string_view labels, char label) { return labels.find(label) != labels.npos; }

class Einsum final : public FunctionNode {
 public:
  explicit Einsum(Subscripts subscripts)
      : FunctionNode("einsum"), subscripts_(std::move(subscripts)) {}

  Arrays forward(const Arrays& x) override {
    Indexes all;
    for (std::size_t k = 0; k < x.size(); ++k) all.push_back(static_cast<int>(k));
    retain_inputs(all);
    return {xp::einsum(subscripts_.str(), x)};
  }
  /// Of two operands: one for each combination of places along all labels. More are multiplied two
  /// by two, by what xp::einsum chooses: counted as if all at once.
  std::int64_t multiply_adds(const Arrays& x, const Arrays&) const override {
    if (x.size() < 2) return 0;
    std::map<char, std::int64_t> extents;
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
  // The sum of products of gy and the other operands; where nothing else has an axis of this one
  // the gradient is the same all along it, and off a diagonal it is 0.
  Variable gradient_of_operand(std::size_t i, const Variables& x, const Variable& gy) const {
    const std::string& labels = subscripts_.operands[i];
    const Shape& shape = x[i].shape();
    Subscripts product{{subscripts_.result}, ""};
    Variables factors{gy};
    for (std::size_t k = 0; k < x.size(); ++k) {
      if (k == i) continue;
      product.operands.push_back(subscripts_.operands[k]);
      factors.push_back(x[k]);
    }
    Shape beside;
    for (int axis = 0; axis < shape.ndim(); ++axis) {
      char label = labels[static_cast<std::size_t>(axis)];
      bool first = static_cast<std::size_t>(axis) == labels.find(label);
      bool known = std::any_of(product.operands.begin(), product.operands.end(),
                               [&](const std::string& others) { return has(others, label); });
      if (first && known) product.result += label;
      beside.push_back(first && known ? shape[axis] : 1);
    }
    Variable g = reshape(rensa::apply<Einsum>(factors, product)[0], beside);
    for (int axis = 0; axis < shape.ndim(); ++axis) {
      std::size_t first = labels.find(labels[static_cast<std::size_t>(axis)]);
      if (first == static_cast<std::size_t>(axis)) continue;
      Shape diagonal = Shape::filled(shape.ndim(), 1);
      diagonal[axis] = diagonal[static_cast<int>(first)] = shape[axis];
      g = g * constant(xp::eye(shape[axis], g.dtype(), g.device()).reshape(diagonal));
    }
    return broadcast_to(g, shape);
  }

  Subscripts subscripts_;
};

[[noreturn]] void throw_subscripts(std::string_view subscripts, const char* what) {
  throw ValueError(fmt::format("einsum: subscripts \"{}\": {}", subscripts, what));
}

/// Parts of `text` between commas.
std::vector<std::string> terms_of(const std::string& text) {
  std::vector<std::string> terms(1);
  for (char c : text) {
    if (c == ',') terms.emplace_back();
    else terms.back() += c;
  }
  return terms;
}

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
  Subscripts subscripts;
  std::string left, right;
  for (int i = 0; i < a.ndim(); ++i) left += static_cast<char>('a' + i);
  for (int i = 0; i < b.ndim(); ++i) right += static_cast<char>('a' + a.ndim() + i);
  for (int i = 0; i < a_axes.ndim(); ++i) {
    int from = normalize_axis("tensordot", a_axes[i], a.ndim());
    int to = normalize_axis("tensordot", b_axes[i], b.ndim());
    right[static_cast<std::size_t>(to)] = left[static_cast<std::size_t>(from)];
  }
  for (char label : left) {
    if (!has(right, label)) subscripts.result += label;
  }
  for (char label : right) {
    if (!has(left, label)) subscripts.result += label;
  }
  subscripts.operands = {left, right};
  return apply<Einsum>({a, b}, subscripts)[0];
}

Variable einsum(std::string_view given, const Variables& operands) {
  std::string text;
  for (char c : given) {
    if (c != ' ') text += c;
  }
  std::size_t arrow = text.find("->");
  Subscripts subscripts{terms_of(text.substr(0, arrow)), ""};
  if (subscripts.operands.size() != operands.size()) {
    throw_subscripts(given, "there is a term for each operand");
  }
  // The broadcast axes get labels that nothing else has.
  std::string spare;
  for (char c = 'A'; c <= 'Z'; ++c) {
    if (!has(text, c)) spare += c;
  }
  std::vector<int> broadcast_axes;
  int most = 0;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    std::string& labels = subscripts.operands[k];
    std::size_t dots = labels.find("...");
    int named = static_cast<int>(labels.size()) - (dots == labels.npos ? 0 : 3);
    int rest = operands[k].ndim() - named;
    if (rest < 0 || (rest > 0 && dots == labels.npos)) {
      throw_subscripts(given, "a term has a label for each axis of its operand");
    }
    broadcast_axes.push_back(rest);
    most = std::max(most, rest);
  }
  if (static_cast<std::size_t>(most) > spare.size()) {
    throw_subscripts(given, "no capital letters are left for the axes of \"...\"");
  }
  std::string all = spare.substr(0, static_cast<std::size_t>(most));
  Shape common = Shape::filled(most, 1);
  for (std::size_t k = 0; k < operands.size(); ++k) {
    std::string& labels = subscripts.operands[k];
    std::size_t dots = labels.find("...");
    if (dots == labels.npos) continue;
    int rest = broadcast_axes[k];
    Shape shape;
    for (int i = 0; i < rest; ++i) {
      shape.push_back(operands[k].shape(static_cast<int>(dots) + i));
    }
    common = broadcast_shapes("einsum", common, shape);
    labels.replace(dots, 3, all.substr(static_cast<std::size_t>(most - rest)));
  }
  if (arrow == text.npos) {
    std::string joined, once;
    for (const std::string& labels : subscripts.operands) joined += labels;
    for (char label : joined) {
      if (!has(all, label) && std::count(joined.begin(), joined.end(), label) == 1) once += label;
    }
    std::sort(once.begin(), once.end());
    subscripts.result = all + once;
  } else {
    subscripts.result = text.substr(arrow + 2);
    std::size_t dots = subscripts.result.find("...");
    if (dots != subscripts.result.npos) subscripts.result.replace(dots, 3, all);
  }
  Variables xs;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    Shape shape = operands[k].shape();
    for (int i = 0; i < shape.ndim(); ++i) {
      std::size_t place = all.find(subscripts.operands[k][static_cast<std::size_t>(i)]);
      if (place != all.npos) shape[i] = common[static_cast<int>(place)];
    }
    xs.push_back(broadcast_to(operands[k], shape));
  }
  return apply<Einsum>(xs, subscripts)[0];
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

// Products of matrices.
#include <fmt/format.h>

#include "rensa/array/internal.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/launcher.h"
#include "rensa/device/matmul_layout.h"
#include "rensa/device/operations.h"

namespace rensa {

namespace {

[[noreturn]] void throw_no_product(const char* name, const Array& a, const Array& b) {
  throw ShapeError(fmt::format("{}: operands of shapes {} and {} do not fit: {}, {}", name,
                               a.shape().str(), b.shape().str(), a.view().describe(),
                               b.view().describe()));
}

// `a` in the dtype of the product, laid out so that the libraries take it.
Array product_operand(const Array& a, Dtype dtype) {
  Array converted = a.astype(dtype, false);
  return is_matmul_operand(converted.view()) ? converted : converted.copy();
}

// c = a @ b (+ bias), whose shapes fit: (..., m, k), (..., k, n), (..., m, n).
void multiply_into(const char* name, const Array& a, const Array& b, const Array& bias,
                   const Array& c) {
  if (c.size() == 0) return;
  if (a.shape(-1) == 0) {  // sums of nothing
    if (bias.defined()) rensa::detail::copy_elements(name, bias, c);
    else rensa::detail::fill_elements(name, c, 0);
    return;
  }
  Array left = product_operand(a, c.dtype()), right = product_operand(b, c.dtype());
  Matmul op(name);
  op.tf32 = config().tf32;
  op.autotune = config().autotune;
  op.a = left.operand();
  op.b = right.operand();
  op.c = c.operand();
  Array row;
  if (bias.defined()) {
    row = bias.astype(c.dtype(), false).ascontiguous();
    op.bias = row.operand();
  }
  launch(op);
}

Shape leading_axes(const Shape& shape) {
  return Shape(
      std::span<const std::int64_t>(shape.data(), static_cast<std::size_t>(shape.ndim() - 2)));
}

// Of at least two dimensions each.
Array matrix_product(const char* name, const Array& a, const Array& b) {
  if (a.shape(-1) != b.shape(-2)) throw_no_product(name, a, b);
  Dtype dtype = promote_types(a.dtype(), b.dtype());
  std::int64_t m = a.shape(-2), k = a.shape(-1), n = b.shape(-1);
  if (b.ndim() == 2 && a.ndim() > 2 && a.is_contiguous() && a.size() != 0) {
    // One product over all rows instead of one for each matrix of a.
    Shape shape = a.shape();
    shape[a.ndim() - 1] = n;
    return matrix_product(name, a.reshape({-1, k}), b).reshape(shape);
  }
  Shape leading = broadcast_shapes(name, leading_axes(a.shape()), leading_axes(b.shape()));
  auto with = [&](std::int64_t rows, std::int64_t columns) {
    Shape shape = leading;
    shape.push_back(rows);
    shape.push_back(columns);
    return shape;
  };
  Array c = rensa::detail::new_array(with(m, n), dtype, a.device());
  multiply_into(name, a.broadcast_to(with(m, k)), b.broadcast_to(with(k, n)), Array(), c);
  return c;
}

void check_pair(const char* name, const Array& a, const Array& b) {
  rensa::detail::check_defined(name, a);
  rensa::detail::check_defined(name, b);
  check_same_device(name, a, b);
}

}  // namespace

namespace xp {

Array matmul(const Array& a, const Array& b) {
  check_pair("matmul", a, b);
  if (a.ndim() == 0 || b.ndim() == 0) throw_no_product("matmul", a, b);
  bool row = a.ndim() == 1, column = b.ndim() == 1;
  Array left = row ? a.expand_dims(0) : a, right = column ? b.expand_dims(1) : b;
  if (left.shape(-1) != right.shape(-2)) throw_no_product("matmul", a, b);
  Array c = matrix_product("matmul", left, right);
  if (column) c = c.squeeze(-1);
  if (row) c = c.squeeze(column ? -1 : -2);
  return c;
}

Array dot(const Array& a, const Array& b) {
  check_pair("dot", a, b);
  if (a.ndim() == 0 || b.ndim() == 0) return xp::multiply(a, b);
  int summed = b.ndim() == 1 ? 0 : b.ndim() - 2;
  if (a.shape(-1) != b.shape(summed)) throw_no_product("dot", a, b);
  // (M, k) @ (k, N), M and N being all other axes of a and of b.
  std::int64_t k = a.shape(-1), others = 1;
  Shape shape = a.shape(), order = {summed};
  shape.erase(a.ndim() - 1);
  for (int i = 0; i < b.ndim(); ++i) {
    if (i == summed) continue;
    shape.push_back(b.shape(i));
    order.push_back(i);
    others *= b.shape(i);
  }
  std::int64_t rows = 1;
  for (int i = 0; i + 1 < a.ndim(); ++i) rows *= a.shape(i);
  return matrix_product("dot", a.reshape({rows, k}), b.transpose(order).reshape({k, others}))
      .reshape(shape);
}

Array linear(const Array& x, const Array& w, const Array& bias) {
  check_pair("linear", x, w);
  if (x.ndim() != 2 || w.ndim() != 2 || x.shape(1) != w.shape(1)) throw_no_product("linear", x, w);
  Dtype dtype = promote_types(x.dtype(), w.dtype());
  if (bias.defined()) {
    check_same_device("linear", x, bias);
    if (bias.ndim() != 1 || bias.shape(0) != w.shape(0)) throw_no_product("linear", w, bias);
    dtype = promote_types(dtype, bias.dtype());
  }
  Array y = rensa::detail::new_array({x.shape(0), w.shape(0)}, dtype, x.device());
  multiply_into("linear", x, w.transpose(), bias, y);
  return y;
}

}  // namespace xp

Array Array::dot(const Array& other) const { return xp::dot(*this, other); }

}  // namespace rensa

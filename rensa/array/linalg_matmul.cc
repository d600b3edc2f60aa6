// Products of matrices.
#include <fmt/format.h>

#include "rensa/array/internal.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/launcher.h"
#include "rensa/operations/matmul/blas_layout.h"
#include "rensa/operations/matmul/matmul.h"

namespace rensa {

namespace {

[[noreturn]] void throw_no_product(const char* name, const Array& a, const Array& b) {
  throw ShapeError(fmt::format("{}: operands of shapes {} and {} do not fit: {}, {}", name,
                               a.shape().str(), b.shape().str(), a.view().describe(),
                               b.view().describe()));
}

// Checks that axis i of `a` is as long as axis k of `b`, over which products are summed.
void check_summed(const char* name, const Array& a, int i, const Array& b, int k) {
  std::int64_t in_a = a.shape(i), in_b = b.shape(k);
  if (in_a == in_b) return;
  throw ShapeError(fmt::format(
      "{}: axis {} of {} has extent {}, axis {} of {} has extent {}; they have to be equal", name,
      normalize_axis(name, i, a.ndim()), a.view().describe(), in_a,
      normalize_axis(name, k, b.ndim()), b.view().describe(), in_b));
}

// `a` in the dtype of the product, laid out so that the libraries take it.
Array product_operand(const Array& a, Dtype dtype) {
  Array converted = a.astype(dtype, false);
  return is_matmul_operand(converted.view()) ? converted : converted.copy();
}

// c = a @ b (+ bias), whose shapes fit: (..., m, k), (..., k, n), (..., m, n).
void multiply_into(const char* name, const Array& a, const Array& b, const Array& bias,
                   const Array& c, bool gate_follows = false) {
  if (c.size() == 0) return;
  if (a.shape(-1) == 0) {  // sums of nothing
    if (bias.defined()) rensa::detail::copy_elements(name, bias, c);
    else rensa::detail::fill_elements(name, c, 0);
    return;
  }
  Array left = product_operand(a, c.dtype()), right = product_operand(b, c.dtype());
  operations::Matmul op(name);
  op.tf32 = config().tf32;
  op.autotune = config().autotune;
  op.gate_follows = gate_follows;
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

Shape with_matrix(Shape leading, std::int64_t rows, std::int64_t columns) {
  leading.push_back(rows);
  leading.push_back(columns);
  return leading;
}

// Of the product of operands that fit, of at least two dimensions each.
Shape product_shape(const char* name, const Array& a, const Array& b) {
  return with_matrix(broadcast_shapes(name, leading_axes(a.shape()), leading_axes(b.shape())),
                     a.shape(-2), b.shape(-1));
}

// Axes [begin, end) of a view as one, where they lie behind one another.
struct MergedAxis {
  std::int64_t extent = 1, stride = 0;
  bool exists = true;

  MergedAxis(const ArrayView& view, int begin, int end) {
    for (int i = end; i-- > begin;) {
      if (view.shape[i] == 1) continue;
      if (extent == 1) stride = view.strides[i];
      else exists = exists && view.strides[i] == stride * extent;
      extent *= view.shape[i];
    }
    exists = exists || extent == 0;
  }
};

// `a` as a matrix whose rows are its first `row_axes` axes, and its columns the others. Undefined
// where no view is that.
Array as_matrix(const Array& a, int row_axes) {
  MergedAxis rows(a.view(), 0, row_axes), columns(a.view(), row_axes, a.ndim());
  if (!rows.exists || !columns.exists) return Array();
  return rensa::detail::new_view(a, 0, {rows.extent, columns.extent},
                                 {rows.stride, columns.stride});
}

Array turned(const Array& a) { return a.swapaxes(-1, -2); }

// c = a @ b, c being of the product's shape, it or its transpose a matmul result.
void matrix_product(const char* name, const Array& a, const Array& b, const Array& c) {
  if (!is_matmul_result(c.view())) return matrix_product(name, turned(b), turned(a), turned(c));
  if (b.ndim() == 2 && a.ndim() > 2) {
    // One product over all rows instead of one for each matrix of a.
    Array rows = as_matrix(a, a.ndim() - 1), results = as_matrix(c, c.ndim() - 1);
    if (rows.defined() && is_matmul_operand(rows.view()) && results.defined() &&
        is_matmul_result(results.view())) {
      return multiply_into(name, rows, b, Array(), results);
    }
  }
  std::int64_t m = a.shape(-2), k = a.shape(-1), n = b.shape(-1);
  Shape leading = leading_axes(c.shape());
  multiply_into(name, a.broadcast_to(with_matrix(leading, m, k)),
                b.broadcast_to(with_matrix(leading, k, n)), Array(), c);
}

void check_out(const char* name, const Array& a, const Shape& shape, Dtype dtype,
               const Array& out) {
  rensa::detail::check_destination(name, a, out);
  rensa::detail::check_same_kind(name, dtype, out);
  if (out.shape() == shape) return;
  throw ShapeError(fmt::format("{}: the product has the shape {}, out is {}", name, shape.str(),
                               out.view().describe()));
}

// Whether a product may be written there as it is.
bool takes_product(const Array& a, const Array& b, const Array& out, const Array& matrices) {
  return matrices.defined() &&
         (is_matmul_result(matrices.view()) || is_matmul_result(turned(matrices).view())) &&
         !xp::shares_memory(a, out) && !xp::shares_memory(b, out);
}

// Calls multiply(c) for what as_matrices(c) is of an array c of the shape and dtype of a @ b, and
// returns c: `out`, or an array that is copied there where the product cannot be written into it.
template <class AsMatrices, class Multiply>
Array product_into(const char* name, const Array& a, const Array& b, const Shape& shape,
                   const Array* out, AsMatrices&& as_matrices, Multiply&& multiply) {
  Dtype dtype = promote_types(a.dtype(), b.dtype());
  if (out) {
    check_out(name, a, shape, dtype, *out);
    Array matrices = out->dtype() == dtype ? as_matrices(*out) : Array();
    if (takes_product(a, b, *out, matrices)) {
      multiply(matrices);
      return *out;
    }
  }
  Array c = rensa::detail::new_array(shape, dtype, a.device());
  multiply(as_matrices(c));
  if (!out) return c;
  rensa::detail::copy_elements(name, c, *out);
  return *out;
}

void check_pair(const char* name, const Array& a, const Array& b) {
  rensa::detail::check_defined(name, a);
  rensa::detail::check_defined(name, b);
  check_same_device(name, a, b);
}

}  // namespace

namespace detail {

Array matmul_before_gate(const Array& a, const Array& b) {
  check_pair("matmul", a, b);
  check_summed("matmul", a, 1, b, 0);
  Array c = new_array({a.shape(0), b.shape(1)}, promote_types(a.dtype(), b.dtype()), a.device());
  multiply_into("matmul", a, b, Array(), c, true);
  return c;
}

}  // namespace detail

namespace xp {

Array matmul(const Array& a, const Array& b, const MatmulOptions& options) {
  if (options.dtype || !options.axes.empty() || (options.out && options.casting != "same_kind")) {
    return rensa::detail::product_with("matmul", a, b, {2, 2, 2}, options,
                                       [](const Array& x, const Array& y) { return matmul(x, y); });
  }
  check_pair("matmul", a, b);
  if (a.ndim() == 0 || b.ndim() == 0) throw_no_product("matmul", a, b);
  bool row = a.ndim() == 1, column = b.ndim() == 1;
  Array left = row ? a.expand_dims(0) : a, right = column ? b.expand_dims(1) : b;
  check_summed("matmul", a, -1, b, column ? 0 : -2);
  Shape shape = product_shape("matmul", left, right);
  if (column) shape.erase(shape.ndim() - 1);
  if (row) shape.erase(shape.ndim() - (column ? 1 : 2));
  auto as_matrices = [&](Array c) {
    if (column) c = c.expand_dims(-1);
    return row ? c.expand_dims(-2) : c;
  };
  return product_into("matmul", a, b, shape, options.out.get(), as_matrices,
                      [&](const Array& c) { matrix_product("matmul", left, right, c); });
}

Array dot(const Array& a, const Array& b, const ProductOptions& options) {
  check_pair("dot", a, b);
  if (a.ndim() == 0 || b.ndim() == 0) {
    if (options.out) {
      const Shape& shape = a.ndim() == 0 ? b.shape() : a.shape();
      check_out("dot", a, shape, promote_types(a.dtype(), b.dtype()), *options.out);
    }
    return rensa::detail::elementwise("dot", ufunc::multiply, {a, b}, options.out.get());
  }
  int summed = b.ndim() == 1 ? 0 : b.ndim() - 2;
  check_summed("dot", a, -1, b, summed);
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
  auto as_matrices = [&](const Array& c) { return as_matrix(c, a.ndim() - 1); };
  return product_into("dot", a, b, shape, options.out.get(), as_matrices, [&](const Array& c) {
    matrix_product("dot", a.reshape({rows, k}), b.transpose(order).reshape({k, others}), c);
  });
}

Array linear(const Array& x, const Array& w, const Array& bias) {
  check_pair("linear", x, w);
  if (x.ndim() != 2 || w.ndim() != 2) throw_no_product("linear", x, w);
  check_summed("linear", x, 1, w, 1);
  DtypeSet dtypes;
  dtypes.add(x.dtype());
  dtypes.add(w.dtype());
  if (bias.defined()) {
    check_same_device("linear", x, bias);
    if (bias.ndim() != 1) throw_no_product("linear", w, bias);
    check_summed("linear", w, 0, bias, 0);
    dtypes.add(bias.dtype());
  }
  Array y = rensa::detail::new_array({x.shape(0), w.shape(0)}, dtypes.promoted(), x.device());
  multiply_into("linear", x, w.transpose(), bias, y);
  return y;
}

}  // namespace xp

}  // namespace rensa

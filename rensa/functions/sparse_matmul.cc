// Products of sparse matrices: rows are gathered, multiplied and added up.
#include "rensa/functions/sparse_matmul.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "rensa/array/creation.h"
#include "rensa/array/indexing_routines.h"
#include "rensa/array/routines.h"
#include "rensa/autograd/autocast.h"
#include "rensa/core/error.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/indexing_functions.h"
#include "rensa/functions/math_functions.h"

namespace rensa::functions {

namespace {

bool is_integer(const Array& a) {
  return dtype_kind(a.dtype()) == 'i' || dtype_kind(a.dtype()) == 'u';
}

/// Of the matrices of a batch behind one another the rows (or columns) that elements stand in: 0 of
/// those that are none, one beyond all of them of those outside of their matrix.
Array places(const Array& at, const Array& none, std::int64_t extent) {
  Array wide = at.astype(int64, false);
  std::int64_t n = at.ndim() == 2 ? at.shape(0) : 1;
  Array beyond = xp::full({}, n * extent, int64, at.device());
  Array found = wide;
  if (at.ndim() == 2) found = found + (xp::arange(n, int64, at.device()) * extent).reshape({n, 1});
  found = xp::where((wide >= 0) * (wide < extent), found, beyond);
  return xp::where(none, xp::zeros({}, int64, at.device()), found).reshape({-1});
}

struct Elements {
  Array none;
  Variable data;  // 0 where there is none
  Array row, col;
};

/// `values` (k, ...), 0 where there is no element: not its product with 0, which of an infinity is
/// NaN.
Variable where_there_is(const Array& none, const Variable& values) {
  return where(none, constant(xp::zeros({}, values.dtype(), values.device())), values);
}

Elements elements_of(const CooMatrix& m) {
  Array none = (m.row == -1) + (m.col == -1);
  return {none.reshape({-1, 1}), reshape(where_there_is(none, m.data), {-1, 1}),
          places(m.row, none, m.rows), places(m.col, none, m.columns)};
}

Variable last_swapped(const Variable& x) { return swapaxes(x, -1, -2); }

/// m @ dense, or with `transposed` m's transposed.
Variable product(const CooMatrix& m, const Variable& dense, bool transposed) {
  bool batch = m.data.ndim() == 2;
  std::int64_t n = batch ? m.data.shape(0) : 1, width = dense.shape(-1);
  std::int64_t rows = transposed ? m.columns : m.rows, inner = transposed ? m.rows : m.columns;
  if (rows == 0 || inner == 0) {  // nor is there a place for what is none
    Shape shape = batch ? Shape{n, rows, width} : Shape{rows, width};
    return broadcast_to(constant(xp::zeros({}, dense.dtype(), dense.device())), shape);
  }
  Elements elements = elements_of(m);
  const Array& from = transposed ? elements.row : elements.col;
  const Array& to = transposed ? elements.col : elements.row;
  Variable gathered = get_item(reshape(dense, {n * inner, width}), from);
  gathered = where_there_is(elements.none, gathered * elements.data);
  Variable zeros = constant(xp::zeros({n * rows, width}, dense.dtype(), dense.device()));
  Variable sums = scatter_add(zeros, to, gathered);
  return batch ? reshape(sums, {n, rows, width}) : sums;
}

void check(const CooMatrix& m, const Variable& dense, std::int64_t sparse_inner, int dense_axis) {
  bool batch = m.data.ndim() == 2;
  bool fits = dense.ndim() == (batch ? 3 : 2) && dense.shape(dense_axis) == sparse_inner &&
              (!batch || dense.shape(0) == m.data.shape(0));
  std::string text =
      fmt::format("sparse_matmul: a sparse ({}, {}) with data {} and a dense {}", m.rows, m.columns,
                  m.data.array().view().describe(), dense.array().view().describe());
  if (!fits) {
    throw ShapeError(text + ": the inner extents, and the numbers of matrices, must be equal");
  }
  if (dtype_kind(dense.dtype()) != 'f' || dense.dtype() != m.data.dtype()) {
    throw DtypeError(text + ": both must be of one floating dtype; use F::cast or astype");
  }
  check_same_device("sparse_matmul", m.data.array(), dense.array());
}

/// As an Autocast has them for a product.
std::pair<CooMatrix, Variable> cast_both(const CooMatrix& sparse, const Variable& dense) {
  Variables both = autograd::autocast("sparse_matmul", {sparse.data, dense});
  CooMatrix cast = sparse;
  cast.data = both[0];
  return {std::move(cast), both[1]};
}

}  // namespace

CooMatrix::CooMatrix(Variable values, Array rows_of, Array columns_of, std::int64_t height,
                     std::int64_t width)
    : data(std::move(values)),
      row(std::move(rows_of)),
      col(std::move(columns_of)),
      rows(height),
      columns(width) {
  std::string text =
      fmt::format("CooMatrix: data {}, row {}, col {} of ({}, {})", data.array().view().describe(),
                  row.view().describe(), col.view().describe(), rows, columns);
  bool fits = (data.ndim() == 1 || data.ndim() == 2) && row.shape() == data.shape() &&
              col.shape() == data.shape() && rows >= 0 && columns >= 0;
  if (!fits) throw ShapeError(text + ": data, row and col must be (k,), or (n, k)");
  if (!is_integer(row) || !is_integer(col))
    throw DtypeError(text + ": row and col must be integers");
  check_same_device("CooMatrix", data.array(), row);
  check_same_device("CooMatrix", data.array(), col);
}

Variable CooMatrix::to_dense() const {
  Elements elements = elements_of(*this);
  bool batch = data.ndim() == 2;
  std::int64_t n = batch ? data.shape(0) : 1;
  Array column = xp::where(elements.col == n * columns, elements.col, elements.col % columns);
  Variable zeros = constant(xp::zeros({n * rows, columns}, data.dtype(), data.device()));
  Variable dense = scatter_add(zeros, {elements.row, column}, reshape(elements.data, {-1}));
  return batch ? reshape(dense, {n, rows, columns}) : dense;
}

CooMatrix to_coo(const Array& x, std::int64_t ldnz, bool requires_grad) {
  if (x.ndim() != 2 && x.ndim() != 3) {
    throw ShapeError(fmt::format("to_coo: x {} must be (rows, columns) or (n, rows, columns)",
                                 x.view().describe()));
  }
  bool batch = x.ndim() == 3;
  Array matrices = batch ? x : xp::expand_dims(x, 0);
  std::int64_t n = matrices.shape(0);
  std::vector<std::vector<Array>> found;
  for (std::int64_t i = 0; i < n; ++i) {
    found.push_back(xp::nonzero(matrices[i]));
    ldnz = std::max(ldnz, found.back()[0].size());
  }
  Array data = xp::zeros({n, ldnz}, x.dtype(), x.device());
  Array row = xp::full({n, ldnz}, -1, int32, x.device()), col = row.copy();
  for (std::int64_t i = 0; i < n; ++i) {
    const auto& at = found[static_cast<std::size_t>(i)];
    Slice all(0, at[0].size());
    data[{i, all}].assign(matrices[i][{at[0], at[1]}]);
    row[{i, all}].assign(at[0].astype(int32));
    col[{i, all}].assign(at[1].astype(int32));
  }
  auto whole = [&](const Array& a) { return batch ? a : a.reshape({ldnz}); };
  return {Variable(whole(data), requires_grad), whole(row), whole(col), matrices.shape(1),
          matrices.shape(2)};
}

Variable sparse_matmul(const CooMatrix& sparse, const Variable& dense, bool transa, bool transb) {
  auto [a, b] = cast_both(sparse, dense);
  check(a, b, transa ? a.rows : a.columns, transb ? -1 : -2);
  return product(a, transb ? last_swapped(b) : b, transa);
}

// (a b)' = b' a'.
Variable sparse_matmul(const Variable& dense, const CooMatrix& sparse, bool transa, bool transb) {
  auto [b, a] = cast_both(sparse, dense);
  check(b, a, transb ? b.columns : b.rows, transa ? -2 : -1);
  return last_swapped(product(b, transa ? a : last_swapped(a), !transb));
}

}  // namespace rensa::functions

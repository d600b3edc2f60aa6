#include "rensa/array/index_grids.h"

#include <fmt/format.h>

#include <algorithm>

#include "rensa/array/indexing_routines.h"
#include "rensa/array/internal.h"
#include "rensa/array/ufuncs/arithmetic.h"
#include "rensa/core/checked.h"
#include "rensa/core/error.h"
#include "rensa/core/host_memory.h"
#include "rensa/core/triangle.h"
#include "rensa/device/launcher.h"
#include "rensa/operations/triangle/triangle.h"

namespace rensa::xp {

using rensa::detail::check_defined;
using rensa::detail::copy_elements;
using rensa::detail::diagonal_view;
using rensa::detail::fill_elements;
using rensa::detail::new_view;
using rensa::detail::slice_along;

// --- parts of a matrix ---
namespace {

// The coordinates of the lower, or upper, triangle of a matrix.
std::vector<Array> triangle_indices(const char* name, bool lower, std::int64_t n, std::int64_t k,
                                    std::int64_t m, Device device) {
  if (n < 0 || m < 0) {
    throw ShapeError(fmt::format("{}: {} rows and {} columns do not make a matrix", name, n, m));
  }
  // Beyond these diagonals there is all of the matrix, or nothing.
  k = std::clamp(k, -n, m);
  (void)checked_multiply(name, 2, checked_multiply(name, n, m));  // what the sums of rows reach
  // Of a matrix without elements one extent may be any number.
  std::int64_t count = n == 0 || m == 0 ? 0 : TriangleShape{lower, k, n, m}.before(n);
  Array rows = empty({count}, int64, device), columns = empty({count}, int64, device);
  if (count == 0) return {rows, columns};
  operations::TriangleIndices op(name);
  op.lower = lower;
  op.k = k;
  op.rows = n;
  op.columns = m;
  op.row_indices = rows.operand();
  op.column_indices = columns.operand();
  launch(op);
  return {rows, columns};
}

void check_matrix(const char* name, const Array& a) {
  check_defined(name, a);
  if (a.ndim() == 2) return;
  throw ShapeError(fmt::format("{}: {} is not a matrix", name, a.view().describe()));
}

void check_equal_extents(const char* name, const Array& a) {
  const Shape& shape = a.shape();
  if (a.ndim() >= 2 && std::all_of(shape.begin(), shape.end(),
                                   [&](std::int64_t extent) { return extent == shape[0]; })) {
    return;
  }
  throw ShapeError(fmt::format("{}: the extents of {} are not two or more equal ones", name,
                               a.view().describe()));
}

void check_indices(const char* name, const Array& indices) {
  check_defined(name, indices);
  if (dtype_kind(indices.dtype()) == 'i' || dtype_kind(indices.dtype()) == 'u') return;
  throw DtypeError(fmt::format("{}: {} are not indices: they have to be of an integer dtype", name,
                               indices.view().describe()));
}

// Waits for the device.
void check_in_range(const char* name, const Array& indices, std::int64_t extent) {
  if (indices.size() == 0) return;
  // The quotient is 0 in range and nowhere else; one too large for int64 wraps to a negative one.
  Array outside = floor_divide(indices.astype(int64, false), std::max<std::int64_t>(extent, 1));
  if (extent > 0 && !any(outside).item<bool>()) return;
  throw IndexError(fmt::format("{}: some of {} are outside of [0, {})", name,
                               indices.view().describe(), extent));
}

// The elements of an array of this shape. Throws ShapeError for a negative extent, and for more
// than can be counted.
std::int64_t checked_total(const char* name, const Shape& shape) {
  std::int64_t total = 1;
  for (std::int64_t extent : shape) {
    if (extent < 0) {
      throw ShapeError(fmt::format("{}: shape {} has a negative extent", name, shape.str()));
    }
    total = checked_multiply(name, total, extent);
  }
  return total;
}

// 'C' or 'F'.
char checked_order(const char* name, Order order) {
  if (order.letter() == 'C' || order.letter() == 'F') return order.letter();
  throw ValueError(
      fmt::format("{}: the order is '{}'; it has to be 'C' or 'F'", name, order.letter()));
}

}  // namespace

std::vector<Array> diag_indices(std::int64_t n, int ndim, Placement device) {
  if (ndim > kMaxNdim) {
    throw ShapeError(
        fmt::format("diag_indices: an array has at most {} dimensions, not {}", kMaxNdim, ndim));
  }
  return std::vector<Array>(static_cast<std::size_t>(std::max(ndim, 0)),
                            arange(0, n, 1, int64, device));
}

std::vector<Array> diag_indices_from(const Array& a) {
  check_defined("diag_indices_from", a);
  check_equal_extents("diag_indices_from", a);
  return diag_indices(a.shape(0), a.ndim(), a.device());
}

std::vector<Array> tril_indices(std::int64_t n, std::int64_t k, std::optional<std::int64_t> m,
                                Placement device) {
  return triangle_indices("tril_indices", true, n, k, m.value_or(n), device.device());
}

std::vector<Array> triu_indices(std::int64_t n, std::int64_t k, std::optional<std::int64_t> m,
                                Placement device) {
  return triangle_indices("triu_indices", false, n, k, m.value_or(n), device.device());
}

std::vector<Array> tril_indices_from(const Array& a, std::int64_t k) {
  check_matrix("tril_indices_from", a);
  return tril_indices(a.shape(0), k, a.shape(1), a.device());
}

std::vector<Array> triu_indices_from(const Array& a, std::int64_t k) {
  check_matrix("triu_indices_from", a);
  return triu_indices(a.shape(0), k, a.shape(1), a.device());
}

std::vector<Array> mask_indices(std::int64_t n,
                                const std::function<Array(const Array&, std::int64_t)>& mask,
                                std::int64_t k, Placement device) {
  return nonzero(mask(ones({n, n}, int64, device), k));
}

ndindex::iterator& ndindex::iterator::operator++() {
  --left_;
  for (int i = at_.ndim(); i-- > 0;) {
    if (++at_[i] < shape_[i]) break;
    at_[i] = 0;
  }
  return *this;
}

Array indices(const Shape& shape, Dtype dtype, Placement device) {
  Shape all = shape;
  all.insert(0, shape.ndim());
  Array out = empty(all, dtype, device);
  for (int i = 0; i < shape.ndim(); ++i) {
    Shape along = Shape::filled(shape.ndim(), 1);
    along[i] = shape[i];
    copy_elements("indices", arange(0, shape[i], 1, dtype, out.device()).reshape(along), out[i]);
  }
  return out;
}

std::vector<Array> ix_(std::span<const Array> arrays) {
  std::vector<Array> places;
  for (const Array& a : arrays) {
    check_defined("ix_", a);
    if (a.ndim() != 1) {
      throw ShapeError(fmt::format("ix_: {} does not have one dimension", a.view().describe()));
    }
    places.push_back(a.dtype() == bool_ ? flatnonzero(a) : a);
  }
  return meshgrid(places, {.indexing = "ij", .sparse = true, .copy = false});
}

std::vector<Array> ix_(std::initializer_list<Array> arrays) {
  return ix_(std::span<const Array>(arrays.begin(), arrays.size()));
}

// --- flat and n-dimensional indices ---
std::vector<Array> unravel_index(const Array& indices, const Shape& shape, Order given) {
  check_indices("unravel_index", indices);
  char order = checked_order("unravel_index", given);
  check_in_range("unravel_index", indices, checked_total("unravel_index", shape));
  std::vector<Array> coordinates(static_cast<std::size_t>(shape.ndim()));
  Array rest = indices.astype(int64, false);
  for (int step = 0; step < shape.ndim(); ++step) {
    int axis = order == 'C' ? shape.ndim() - 1 - step : step;
    bool last = step == shape.ndim() - 1;
    std::int64_t extent = std::max<std::int64_t>(shape[axis], 1);
    coordinates[static_cast<std::size_t>(axis)] = last ? rest.copy() : remainder(rest, extent);
    if (!last) rest = floor_divide(rest, extent);
  }
  return coordinates;
}

Array ravel_multi_index(std::span<const Array> coordinates, const Shape& shape,
                        IndexModeOption mode, Order given) {
  char order = checked_order("ravel_multi_index", given);
  if (coordinates.empty() || static_cast<int>(coordinates.size()) != shape.ndim()) {
    throw ShapeError(fmt::format("ravel_multi_index: {} coordinate arrays for shape {}",
                                 coordinates.size(), shape.str()));
  }
  (void)checked_total("ravel_multi_index", shape);
  Array flat;
  std::int64_t stride = 1;
  for (int step = 0; step < shape.ndim(); ++step) {
    int axis = order == 'C' ? shape.ndim() - 1 - step : step;
    Array at = coordinates[static_cast<std::size_t>(axis)];
    std::int64_t extent = shape[axis];
    check_indices("ravel_multi_index", at);
    bool checked = mode == IndexMode::raise || mode == IndexMode::strict;
    if (checked) check_in_range("ravel_multi_index", at, extent);
    at = at.astype(int64, false);
    if (mode == IndexMode::wrap) at = remainder(at, extent);
    if (mode == IndexMode::clip) at = clip(at, 0, std::max<std::int64_t>(extent - 1, 0));
    flat = flat.defined() ? flat + at * stride : at;
    stride = wrapping_multiply(stride, extent);  // beside an extent of 0 it is of no use
  }
  bool as_given = mode == IndexMode::raise || mode == IndexMode::strict;
  return shape.ndim() == 1 && as_given ? flat.copy() : flat;
}

Array ravel_multi_index(std::initializer_list<Array> coordinates, const Shape& shape,
                        IndexModeOption mode, Order order) {
  return ravel_multi_index(std::span<const Array>(coordinates.begin(), coordinates.size()), shape,
                           mode, order);
}

// --- diagonals ---
Array diagonal(const Array& a, std::int64_t offset, int axis1, int axis2) {
  check_defined("diagonal", a);
  int row = normalize_axis("diagonal", axis1, a.ndim());
  int column = normalize_axis("diagonal", axis2, a.ndim());
  if (row == column) {
    throw ValueError(fmt::format("diagonal: axes {} and {} of {} are one axis", axis1, axis2,
                                 a.view().describe()));
  }
  return diagonal_view(moveaxis(a, {row, column}, {-2, -1}), offset);
}

Array diagonal(const Array& a, const DiagonalOptions& o) {
  return diagonal(a, o.offset, o.axis1, o.axis2);
}

Array trace(const Array& a, std::int64_t offset, int axis1, int axis2) {
  return diagonal(a, offset, axis1, axis2).sum(-1);
}

Array trace(const Array& a, const TraceOptions& o) {
  return diagonal(a, o.offset, o.axis1, o.axis2).sum({.axis = -1, .dtype = o.dtype, .out = o.out});
}

namespace {

// The diagonals that fill_diagonal writes, in their order.
std::vector<Array> main_diagonals(const Array& a, bool wrap) {
  check_defined("fill_diagonal", a);
  rensa::detail::check_writable("fill_diagonal", a);
  if (a.ndim() != 2) {
    check_equal_extents("fill_diagonal", a);
    std::int64_t step = 0;
    for (std::int64_t stride : a.strides()) step += stride;
    return {new_view(a, 0, {a.shape(0)}, {step})};
  }
  std::vector<Array> parts;
  std::int64_t rows = a.shape(0), columns = a.shape(1);
  for (std::int64_t top = 0; top < rows && columns > 0; top += columns + 1) {
    std::int64_t count = std::min(columns, rows - top);
    parts.push_back(diagonal_view(slice_along(a, 0, top, count), 0));
    if (!wrap) break;
  }
  return parts;
}

}  // namespace

void fill_diagonal(const Array& a, Scalar value, bool wrap) {
  std::vector<Array> parts = main_diagonals(a, wrap);
  rensa::detail::check_in_range("fill_diagonal", value, a.dtype());
  for (const Array& part : parts) fill_elements("fill_diagonal", part, value);
}

void fill_diagonal(const Array& a, const Array& values, bool wrap) {
  std::vector<Array> parts = main_diagonals(a, wrap);
  check_defined("fill_diagonal", values);
  check_same_device("fill_diagonal", a, values);
  std::int64_t total = 0, start = 0;
  for (const Array& part : parts) total += part.size();
  if (total == 0) return;
  if (values.size() == 0) throw ShapeError("fill_diagonal: there are no values to write");
  Array all = resize(values, {total});
  for (const Array& part : parts) {
    copy_elements("fill_diagonal", slice_along(all, 0, start, part.size()), part);
    start += part.size();
  }
}

}  // namespace rensa::xp

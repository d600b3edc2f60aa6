// Routines that make matrices and coordinate grids.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rensa/array/internal.h"
#include "rensa/array/scan.h"
#include "rensa/core/checked.h"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"
#include "rensa/operations/triangle/triangle.h"

namespace rensa::xp {

using rensa::detail::check_defined;
using rensa::detail::copy_elements;
using rensa::detail::diagonal_view;
using rensa::detail::fill_elements;
using rensa::detail::new_array;
using rensa::detail::slice_along;

Array eye(std::int64_t n, Dtype dtype, Placement device) { return eye(n, n, 0, dtype, device); }

Array eye(std::int64_t n, std::int64_t m, std::int64_t k, Dtype dtype, Placement device) {
  Array out = zeros({n, m}, dtype, device);
  fill_elements("eye", diagonal_view(out, k), 1);
  return out;
}

Array eye(std::int64_t n, const EyeOptions& o) {
  Array result = eye(n, o.M.value_or(n), o.k, o.dtype.value_or(float32), o.device);
  return o.order.letter() == 'C' ? result : result.copy(o.order);
}

Array identity(std::int64_t n, Dtype dtype, Placement device) {
  return eye(n, n, 0, dtype, device);
}

namespace {

// The matrix that has a 1-d `v` on diagonal k.
Array with_diagonal(const char* name, const Array& v, std::int64_t k) {
  std::int64_t beside = k < 0 ? checked_subtract(name, 0, k) : k;
  std::int64_t n = checked_add(name, v.size(), beside);
  Array out = zeros({n, n}, v.dtype(), v.device());
  copy_elements(name, v, diagonal_view(out, k));
  return out;
}

}  // namespace

Array diag(const Array& v, std::int64_t k) {
  check_defined("diag", v);
  if (v.ndim() == 2) return diagonal_view(v, k);
  if (v.ndim() == 1) return with_diagonal("diag", v, k);
  throw ShapeError(fmt::format("diag: {} has neither one dimension nor two", v.view().describe()));
}

Array diagflat(const Array& v, std::int64_t k) {
  check_defined("diagflat", v);
  return with_diagonal("diagflat", v.ravel(), k);
}

namespace {

// The bool matrix with the truth at and below diagonal k.
Array lower_triangle(std::int64_t n, std::int64_t m, std::int64_t k, Device device) {
  k = std::clamp(k, -n, m);  // beyond these there is all of the matrix, or nothing
  Array rows = arange(0, n, 1, int64, device);
  Array columns = arange(-k, checked_subtract("tri", m, k), 1, int64, device);
  return greater_equal(rows.reshape({n, 1}), columns);
}

// As many rows as a kernel counts.
constexpr std::int64_t kMaxLines = (std::int64_t{1} << 31) - 1;

// tril for lower, else triu.
Array triangle(const char* name, const Array& a, std::int64_t k, bool lower) {
  check_defined(name, a);
  if (a.ndim() == 0) {
    throw ShapeError(fmt::format("{}: {} is not a matrix", name, a.view().describe()));
  }
  Array in = a.ndim() == 1 ? a.broadcast_to({a.size(), a.size()}) : a;
  Array out = new_array(in.shape(), a.dtype(), a.device());
  if (out.size() == 0) return out;
  std::int64_t lines = out.size() / out.shape(-1);
  if (lines > kMaxLines) {
    throw NotImplementedError(fmt::format("{}: {} has more than {} rows; split it", name,
                                          a.view().describe(), kMaxLines));
  }
  operations::Triangle op(name);
  op.lower = lower;
  op.k = std::clamp(k, -in.shape(-2) - 1, in.shape(-1) + 1);
  op.in = in.operand();
  op.out = out.operand();
  launch(op);
  return out;
}

}  // namespace

Array tri(std::int64_t n, std::int64_t m, std::int64_t k, Dtype dtype, Placement device) {
  if (n < 0 || m < 0) {
    throw ShapeError(fmt::format("tri: {} rows and {} columns do not make a matrix", n, m));
  }
  return lower_triangle(n, m, k, device.device()).astype(dtype, false);
}

Array tri(std::int64_t n, const EyeOptions& o) {
  Array result = tri(n, o.M.value_or(n), o.k, o.dtype.value_or(float32), o.device);
  return o.order.letter() == 'C' ? result : result.copy(o.order);
}

Array tri(std::int64_t n, Dtype dtype, Placement device) { return tri(n, n, 0, dtype, device); }

Array tril(const Array& a, std::int64_t k) { return triangle("tril", a, k, true); }
Array triu(const Array& a, std::int64_t k) { return triangle("triu", a, k, false); }

Array vander(const Array& x, std::optional<std::int64_t> n, bool increasing) {
  check_defined("vander", x);
  if (x.ndim() != 1) {
    throw ShapeError(fmt::format("vander: {} does not have one dimension", x.view().describe()));
  }
  std::int64_t columns = n.value_or(x.size());
  if (columns < 0) throw ValueError(fmt::format("vander: {} columns are fewer than none", columns));
  Dtype dtype = promote_types(x.dtype(), int64);
  Array out = new_array({x.size(), columns}, dtype, x.device());
  if (out.size() == 0) return out;
  Array rising = increasing ? out : flip(out, 1);
  Array one = slice_along(rising, 1, 0, 1), rest = slice_along(rising, 1, 1, columns - 1);
  fill_elements("vander", one, 1);
  copy_elements("vander", x.expand_dims(1), rest);
  copy_elements("vander", cumprod(rest, {.axis = 1, .dtype = dtype}), rest);
  return out;
}

std::vector<Array> meshgrid(std::span<const Array> arrays, const MeshgridOptions& options) {
  std::string_view indexing = options.indexing;
  if (indexing != "xy" && indexing != "ij") {
    throw ValueError(
        fmt::format("meshgrid: indexing is \"{}\"; it has to be \"xy\" or \"ij\"", indexing));
  }
  auto ndim = static_cast<int>(arrays.size());
  Shape common = Shape::filled(ndim, 1);
  std::vector<Array> grids;
  for (int i = 0; i < ndim; ++i) {
    const Array& a = arrays[static_cast<std::size_t>(i)];
    check_defined("meshgrid", a);
    check_same_device("meshgrid", arrays[0], a);
    int along = indexing == "xy" && ndim > 1 && i < 2 ? 1 - i : i;
    Shape shape = Shape::filled(ndim, 1);
    shape[along] = common[along] = a.size();
    grids.push_back(a.reshape(shape));
  }
  for (Array& grid : grids) {
    if (!options.sparse) grid = grid.broadcast_to(common);
    if (options.copy) grid = grid.copy();
  }
  return grids;
}

std::vector<Array> meshgrid(std::initializer_list<Array> arrays, const MeshgridOptions& options) {
  return meshgrid(std::span<const Array>(arrays.begin(), arrays.size()), options);
}

std::vector<Array> meshgrid(std::span<const Array> arrays, std::string_view indexing) {
  return meshgrid(arrays, MeshgridOptions{.indexing = indexing});
}

std::vector<Array> meshgrid(std::initializer_list<Array> arrays, std::string_view indexing) {
  return meshgrid(arrays, MeshgridOptions{.indexing = indexing});
}

bool GridAxis::is_integral() const {
  return num_ < 0 && start_.is_integral() && stop_.is_integral() && step_.is_integral();
}

GridAxis GridAxis::points(double start, double stop, std::int64_t num) {
  if (num < 0) throw ValueError(fmt::format("GridAxis: {} points are fewer than none", num));
  GridAxis axis(start, stop);
  axis.num_ = num;
  return axis;
}

Array GridAxis::values(Dtype dtype, Device device) const {
  if (num_ >= 0) return linspace(start_.real(), stop_.real(), num_, true, dtype, device);
  return arange(start_, stop_, step_, dtype, device);
}

std::vector<Array> ogrid(std::initializer_list<GridAxis> axes, Placement device) {
  bool integral = true;
  for (const GridAxis& axis : axes) integral &= axis.is_integral();
  std::vector<Array> values;
  for (const GridAxis& axis : axes) {
    values.push_back(axis.values(integral ? int64 : float64, device.device()));
  }
  return meshgrid(values, {.indexing = "ij", .sparse = true, .copy = false});
}

Array mgrid(std::initializer_list<GridAxis> axes, Placement device) {
  std::vector<Array> grids = ogrid(axes, device);
  if (grids.empty()) throw ValueError("mgrid: there is no axis");
  if (grids.size() == 1) return grids[0];
  return stack(broadcast_arrays(grids));
}

}  // namespace rensa::xp

#include "rensa/array/functional.h"

#include <fmt/format.h>

#include "rensa/array/index_grids.h"
#include "rensa/array/internal.h"
#include "rensa/core/error.h"
#include "rensa/core/host_memory.h"

namespace rensa::xp {

using rensa::detail::check_defined;

Array apply_along_axis(const std::function<Array(const Array&)>& f, int axis, const Array& a) {
  check_defined("apply_along_axis", a);
  int along = normalize_axis("apply_along_axis", axis, a.ndim());
  Array slices = moveaxis(a, along, -1);
  Shape outer = slices.shape();
  outer.erase(a.ndim() - 1);
  if (outer.total() == 0) {
    throw ShapeError(
        fmt::format("apply_along_axis: {} has no slice along axis {}", a.view().describe(), along));
  }
  auto results = host_list<Array>("apply_along_axis", outer.total());
  Shape at = Shape::filled(outer.ndim(), 0);
  for (std::int64_t i = 0; i < outer.total(); ++i) {
    Array slice = slices;
    std::int64_t rest = i;
    for (int k = outer.ndim() - 1; k >= 0; --k) {
      at[k] = rest % outer[k];
      rest /= outer[k];
    }
    for (std::int64_t index : at) slice = slice[index];
    results.push_back(f(slice));
  }
  Array joined = stack(results);
  Shape shape = outer, from, to;
  for (int k = 0; k < results[0].ndim(); ++k) {
    from.push_back(outer.ndim() + k);
    to.push_back(along + k);
    shape.push_back(results[0].shape()[k]);
  }
  return moveaxis(joined.reshape(shape), from, to);
}

Array apply_over_axes(const std::function<Array(const Array&, int)>& f, const Array& a,
                      const AxisList& axes) {
  check_defined("apply_over_axes", a);
  Array value = a;
  for (std::int64_t given : axes.given() ? axes.values() : Shape()) {
    int axis = normalize_axis("apply_over_axes", given, a.ndim());
    Array result = f(value, axis);
    if (result.ndim() == value.ndim() - 1) result = result.expand_dims(axis);
    if (result.ndim() != value.ndim()) {
      throw ShapeError(
          fmt::format("apply_over_axes: the function made {} of {}; it has to keep the "
                      "axes or drop the one it is given",
                      result.view().describe(), value.view().describe()));
    }
    value = result;
  }
  return value;
}

Array fromfunction(const std::function<Array(const std::vector<Array>&)>& f, const Shape& shape,
                   const CreationOptions& options) {
  Array all = indices(shape, options.dtype.value_or(float64), options.device);
  std::vector<Array> coordinates;
  for (int i = 0; i < shape.ndim(); ++i) coordinates.push_back(all[i]);
  return f(coordinates);
}

Array piecewise(const Array& x, std::span<const Array> conditions,
                const std::vector<Piece>& pieces) {
  check_defined("piecewise", x);
  std::size_t n = conditions.size();
  if (pieces.size() != n && pieces.size() != n + 1) {
    throw ValueError(fmt::format("piecewise: {} pieces for {} conditions, it takes {} or {}",
                                 pieces.size(), n, n, n + 1));
  }
  auto value_of = [&](const Piece& piece) {
    if (const auto* f = std::get_if<1>(&piece.value())) return (*f)(x).astype(x.dtype(), false);
    return full({}, std::get<0>(piece.value()), x.dtype(), x.device());
  };
  Array out =
      pieces.size() > n ? value_of(pieces[n]).broadcast_to(x.shape()).copy() : zeros_like(x);
  for (std::size_t i = 0; i < n; ++i) {
    check_defined("piecewise", conditions[i]);
    rensa::detail::elementwise("piecewise", ufunc::where, {conditions[i], value_of(pieces[i]), out},
                               &out);
  }
  return out;
}

Array piecewise(const Array& x, std::initializer_list<Array> conditions,
                const std::vector<Piece>& pieces) {
  return piecewise(x, std::span<const Array>(conditions.begin(), conditions.size()), pieces);
}

}  // namespace rensa::xp

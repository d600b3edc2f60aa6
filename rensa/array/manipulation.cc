// Views of other shapes and axes, copies between arrays, and sums to a shape.
#include "rensa/array/manipulation.h"

#include <fmt/format.h>

#include <algorithm>

#include "rensa/array/internal.h"
#include "rensa/core/error.h"

namespace rensa::xp {

using rensa::detail::check_defined;

// --- axes ---
namespace {

// Each of `axes` counted from the front. Throws ValueError for one given twice.
Shape normalized(const char* operation, const Shape& axes, int ndim) {
  Shape result;
  unsigned seen = 0;
  for (std::int64_t axis : axes) {
    int place = normalize_axis(operation, axis, ndim);
    if (seen >> place & 1) {
      throw ValueError(fmt::format("{}: axis {} is given twice", operation, axis));
    }
    seen |= 1u << place;
    result.push_back(place);
  }
  return result;
}

bool contains(const Shape& axes, std::int64_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

std::vector<Array> each(std::span<const Array> arrays, Array (*f)(const Array&)) {
  std::vector<Array> results;
  for (const Array& a : arrays) results.push_back(f(a));
  return results;
}

}  // namespace

int ndim(const Array& a) { return a.ndim(); }
Shape shape(const Array& a) { return a.shape(); }
std::int64_t size(const Array& a) { return a.size(); }
std::int64_t size(const Array& a, int axis) { return a.shape(axis); }

Array permute_dims(const Array& a, const Shape& axes) { return a.transpose(axes); }

Array matrix_transpose(const Array& a) {
  check_defined("matrix_transpose", a);
  if (a.ndim() < 2) {
    throw ShapeError(
        fmt::format("matrix_transpose: {} has fewer than two dimensions", a.view().describe()));
  }
  return a.swapaxes(-1, -2);
}

Array moveaxis(const Array& a, int source, int destination) {
  return moveaxis(a, Shape{source}, Shape{destination});
}

Array moveaxis(const Array& a, const Shape& source, const Shape& destination) {
  check_defined("moveaxis", a);
  if (source.size() != destination.size()) {
    throw ValueError(fmt::format("moveaxis: {} axes {} cannot go to {} places {}", source.size(),
                                 source.str(), destination.size(), destination.str()));
  }
  Shape from = normalized("moveaxis", source, a.ndim());
  Shape to = normalized("moveaxis", destination, a.ndim());
  Shape order = Shape::filled(a.ndim(), 0);
  for (int i = 0; i < from.size(); ++i) order[static_cast<int>(to[i])] = from[i];
  int place = 0;
  for (int axis = 0; axis < a.ndim(); ++axis) {
    if (contains(from, axis)) continue;
    while (contains(to, place)) ++place;
    order[place++] = axis;
  }
  return a.transpose(order);
}

Array rollaxis(const Array& a, int axis, int start) {
  check_defined("rollaxis", a);
  axis = normalize_axis("rollaxis", axis, a.ndim());
  if (start < -a.ndim() || start > a.ndim()) {
    throw IndexError(fmt::format("rollaxis: there is no place {} between the axes of {}", start,
                                 a.view().describe()));
  }
  if (start < 0) start += a.ndim();
  return moveaxis(a, axis, start > axis ? start - 1 : start);
}

Array atleast_1d(const Array& a) {
  check_defined("atleast_1d", a);
  return a.ndim() == 0 ? a.expand_dims(0) : a;
}

Array atleast_2d(const Array& a) {
  Array b = atleast_1d(a);
  return b.ndim() == 1 ? b.expand_dims(0) : b;
}

Array atleast_3d(const Array& a) {
  Array b = atleast_2d(a);
  return b.ndim() == 2 ? b.expand_dims(2) : b;
}

std::vector<Array> atleast_1d(std::span<const Array> arrays) { return each(arrays, atleast_1d); }
std::vector<Array> atleast_2d(std::span<const Array> arrays) { return each(arrays, atleast_2d); }
std::vector<Array> atleast_3d(std::span<const Array> arrays) { return each(arrays, atleast_3d); }

Array expand_dims(const Array& a, const Shape& axes) {
  check_defined("expand_dims", a);
  int total = a.ndim() + axes.size();
  Shape places = normalized("expand_dims", axes, total);
  Array result = a;
  for (int i = 0; i < total; ++i) {
    if (contains(places, i)) result = result.expand_dims(i);
  }
  return result;
}

Array squeeze(const Array& a, const Shape& axes) {
  check_defined("squeeze", a);
  Shape places = normalized("squeeze", axes, a.ndim());
  Array result = a;
  for (int i = a.ndim(); i-- > 0;) {
    if (contains(places, i)) result = result.squeeze(i);
  }
  return result;
}

bool isfortran(const Array& a) {
  check_defined("isfortran", a);
  return !a.is_contiguous() && a.transpose().is_contiguous();
}

// --- broadcasting ---

Shape broadcast_shapes(std::initializer_list<Shape> shapes) {
  return broadcast_shapes(std::span<const Shape>(shapes.begin(), shapes.size()));
}

Shape broadcast_shapes(std::span<const Shape> shapes) {
  Shape common;
  for (const Shape& shape : shapes) {
    common = rensa::broadcast_shapes("broadcast_shapes", common, shape);
  }
  return common;
}

broadcast::broadcast(const ArrayList& list) {
  std::span<const Array> arrays = list;
  for (const Array& a : arrays) {
    check_defined("broadcast", a);
    check_same_device("broadcast", arrays[0], a);
    shape_ = rensa::broadcast_shapes("broadcast", shape_, a.shape());
  }
  for (const Array& a : arrays) values_.push_back(a.broadcast_to(shape_));
}

std::vector<Array> broadcast_arrays(const ArrayList& arrays) { return broadcast(arrays).values(); }

// --- copies ---
void copyto(const Array& destination, const Array& source, std::string_view casting,
            const Array& where) {
  check_defined("copyto", destination);
  check_defined("copyto", source);
  rensa::detail::check_casting("copyto", source.dtype(), destination.dtype(), casting);
  if (!where.defined()) {
    // The cast is allowed: assign has only "same_kind" to ask about.
    bool same_kind = can_cast_same_kind(source.dtype(), destination.dtype());
    return destination.assign(same_kind ? source : source.astype(destination.dtype()));
  }
  if (where.dtype() != bool_) {
    throw DtypeError(
        fmt::format("copyto: where is {}, it has to be of bool", where.view().describe()));
  }
  Array in = source.astype(destination.dtype(), false);
  while (in.ndim() > destination.ndim() && in.shape(0) == 1) in = in.squeeze(0);
  rensa::detail::elementwise("copyto", ufunc::where, {where, in, destination}, &destination);
}

void copyto(const Array& destination, Scalar source, std::string_view casting, const Array& where) {
  check_defined("copyto", destination);
  rensa::detail::check_in_range("copyto", source, destination.dtype());
  // A number takes the destination's dtype unless its kind is a higher one.
  Dtype dtype = destination.dtype() == bool_ && source.kind() != 'b'
                    ? source.default_dtype()
                    : source.result_type(destination.dtype());
  rensa::detail::check_casting("copyto", dtype, destination.dtype(), casting);
  if (!where.defined()) {
    rensa::detail::check_writable("copyto", destination);
    return rensa::detail::fill_elements("copyto", destination, source);
  }
  Array value = full({}, source, dtype, destination.device());
  copyto(destination, value, casting, where);
}

Array sum_to(const Array& a, const Shape& shape) {
  check_defined("sum_to", a);
  if (a.shape() == shape) return a;
  int added = a.ndim() - shape.ndim();
  bool fits = added >= 0;
  unsigned axes = 0;
  for (int i = 0; i < a.ndim() && fits; ++i) {
    std::int64_t extent = i < added ? 1 : shape[i - added];
    fits = extent == a.shape()[i] || extent == 1;
    if (extent != a.shape()[i] || i < added) axes |= 1u << i;
  }
  if (!fits) {
    throw ShapeError(fmt::format("sum_to: {} does not come from broadcasting shape {}",
                                 a.view().describe(), shape.str()));
  }
  return rensa::detail::reduce_axes(reduction::sum, a, axes)
      .reshape(shape)
      .astype(a.dtype(), false);
}

}  // namespace rensa::xp

// Joining arrays and splitting them.
#include <fmt/format.h>

#include <algorithm>

#include "rensa/array/internal.h"
#include "rensa/core/checked.h"
#include "rensa/core/error.h"
#include "rensa/core/host_memory.h"

namespace rensa {

namespace detail {

std::optional<Array> joined_in_place(std::span<const Array> parts, int axis) {
  ArrayView whole = parts[0].view();
  if (parts.size() == 1) return parts[0];
  if (whole.shape[axis] == 0) return std::nullopt;
  std::int64_t apart = parts[1].view().data - whole.data, step = apart / whole.shape[axis];
  if (step <= 0 || apart % whole.shape[axis] != 0) return std::nullopt;
  std::int64_t extent = 0;
  for (const Array& part : parts) {
    const ArrayView& view = part.view();
    bool fits = part.storage() == parts[0].storage() && view.dtype == whole.dtype &&
                view.ndim() == whole.ndim() && view.data == whole.data + extent * step;
    for (int i = 0; fits && i < view.ndim(); ++i) {
      fits = (i == axis || view.shape[i] == whole.shape[i]) &&
             (view.shape[i] == 1 || view.strides[i] == (i == axis ? step : whole.strides[i]));
    }
    if (!fits) return std::nullopt;
    extent += view.shape[axis];
  }
  whole.shape[axis] = extent;
  whole.strides[axis] = step;
  return Array(parts[0].storage(), whole);
}

}  // namespace detail

namespace xp {

using rensa::detail::check_defined;
using rensa::detail::slice_along;

namespace {

// The shape of the arrays joined along `along`, after checking that they fit.
Shape joined_shape(const char* name, std::span<const Array> arrays, int along) {
  const Array& first = arrays[0];
  Shape shape = first.shape();
  for (const Array& a : arrays.subspan(1)) {
    check_same_device(name, first, a);
    if (a.ndim() != first.ndim()) {
      throw ShapeError(fmt::format("{}: {} and {} have {} and {} dimensions; they have to be equal",
                                   name, first.view().describe(), a.view().describe(), first.ndim(),
                                   a.ndim()));
    }
    for (int i = 0; i < first.ndim(); ++i) {
      if (i == along || a.shape()[i] == first.shape()[i]) continue;
      throw ShapeError(
          fmt::format("{}: {} and {} have extents {} and {} along axis {}; only along "
                      "axis {} may they differ",
                      name, first.view().describe(), a.view().describe(), first.shape()[i],
                      a.shape()[i], i, along));
    }
    shape[along] = checked_add(name, shape[along], a.shape()[along]);
  }
  return shape;
}

// In the order of axes in which all arrays lie.
Array new_joined(std::span<const Array> arrays, const Shape& shape, Dtype dtype) {
  std::vector<ArrayView> models;
  for (const Array& a : arrays) models.push_back(a.view());
  rensa::detail::MemoryOrder order(models);
  return order.restored(rensa::detail::new_array(order.permuted(shape), dtype, arrays[0].device()));
}

// Where the joined array goes: the caller's `out`, or a new one.
Array destination(const char* name, std::span<const Array> arrays, const Shape& shape,
                  const JoinOptions& options) {
  if (options.out && options.dtype) {
    throw ValueError(
        fmt::format("{}: out has a dtype already, dtype cannot be given as well", name));
  }
  DtypeSet dtypes;
  for (const Array& a : arrays) dtypes.add(a.dtype());
  Dtype dtype = dtypes.promoted();
  Dtype stored = options.out ? (*options.out).dtype() : options.dtype.value_or(dtype);
  for (const Array& a : arrays) {
    rensa::detail::check_casting(name, a.dtype(), stored, options.casting);
  }
  if (!options.out) return new_joined(arrays, shape, stored);
  const Array& out = *options.out;
  rensa::detail::check_destination(name, arrays[0], out);
  if (out.shape() != shape) {
    throw ShapeError(fmt::format("{}: the result of shape {} does not fit into {}", name,
                                 shape.str(), out.view().describe()));
  }
  return out;
}

Array join(const char* name, std::span<const Array> arrays, int axis, const JoinOptions& options) {
  int along = normalize_axis(name, axis, arrays[0].ndim());
  Array out = destination(name, arrays, joined_shape(name, arrays, along), options);
  std::int64_t start = 0;
  std::vector<rensa::detail::CopyPair> parts;
  for (const Array& a : arrays) {
    std::int64_t count = a.shape()[along];
    parts.push_back({a, slice_along(out, along, start, count)});
    start += count;
  }
  rensa::detail::copy_parts(name, parts);
  return out;
}

void check_arrays(const char* name, std::span<const Array> arrays) {
  if (arrays.empty()) throw ValueError(fmt::format("{}: there is no array to join", name));
  for (const Array& a : arrays) check_defined(name, a);
}

// The arrays, each of at least one dimension or as rows or planes.
std::vector<Array> raised(const char* name, std::span<const Array> arrays,
                          Array (*raise)(const Array&)) {
  check_arrays(name, arrays);
  std::vector<Array> result;
  for (const Array& a : arrays) result.push_back(raise(a));
  return result;
}

}  // namespace

// --- joining ---
Array concatenate(const ArrayList& list, const JoinOptions& options) {
  std::span<const Array> arrays = list;
  check_arrays("concatenate", arrays);
  std::vector<Array> changed;
  int axis = 0;
  if (options.axis.given()) {
    axis = options.axis.axis();
  } else {
    arrays = changed = raised("concatenate", arrays, [](const Array& a) { return a.ravel(); });
  }
  if (!options.out) return join("concatenate", arrays, axis, options);
  std::vector<Array> apart;  // an operand in out's memory must not change while another is written
  for (const Array& a : arrays) {
    apart.push_back(may_share_memory(a, *options.out) ? a.copy() : a);
  }
  return join("concatenate", apart, axis, options);
}

Array concat(const ArrayList& arrays, const JoinOptions& options) {
  return concatenate(arrays, options);
}

Array stack(const ArrayList& list, const JoinOptions& options) {
  std::span<const Array> arrays = list;
  check_arrays("stack", arrays);
  if (!options.axis.given()) {
    throw ValueError("stack: the arrays stand along a new axis, which cannot be none");
  }
  int along = normalize_axis("stack", options.axis.axis(), arrays[0].ndim() + 1);
  std::vector<Array> expanded;
  for (const Array& a : arrays) {
    if (a.shape() != arrays[0].shape()) {
      throw ShapeError(fmt::format("stack: {} and {} differ in shape", arrays[0].view().describe(),
                                   a.view().describe()));
    }
    expanded.push_back(a.expand_dims(along));
  }
  JoinOptions joined = options;
  joined.axis = along;
  return concatenate(expanded, joined);
}

Array vstack(const ArrayList& arrays, const StackOptions& options) {
  return concatenate(raised("vstack", arrays, atleast_2d),
                     {.dtype = options.dtype, .casting = options.casting});
}

Array hstack(const ArrayList& arrays, const StackOptions& options) {
  std::vector<Array> rows = raised("hstack", arrays, atleast_1d);
  return concatenate(
      rows,
      {.axis = rows[0].ndim() == 1 ? 0 : 1, .dtype = options.dtype, .casting = options.casting});
}

Array dstack(const ArrayList& arrays) {
  return concatenate(raised("dstack", arrays, atleast_3d), 2);
}

Array column_stack(const ArrayList& arrays) {
  auto column = [](const Array& a) { return a.ndim() < 2 ? a.reshape({-1, 1}) : a; };
  return concatenate(raised("column_stack", arrays, column), 1);
}

Array append(const Array& a, const Array& values, OptionalAxis axis) {
  return concatenate({a, values}, axis);
}

// --- splitting ---
namespace {

// Python's a[begin:end] along an axis, where the places count from the end if negative.
Array between(const Array& a, int axis, std::int64_t begin, std::int64_t end) {
  Slice::Range range = Slice(begin, end).over(a.shape()[axis]);
  return slice_along(a, axis, range.start, range.count);
}

std::vector<Array> cut(const char* name, const Array& a, std::span<const std::int64_t> indices,
                       int axis) {
  check_defined(name, a);
  int along = normalize_axis(name, axis, a.ndim());
  std::vector<Array> parts;
  std::int64_t begin = 0;
  for (std::int64_t end : indices) {
    parts.push_back(between(a, along, begin, end));
    begin = end;
  }
  Slice::Range rest = Slice(begin, none).over(a.shape()[along]);
  parts.push_back(slice_along(a, along, rest.start, rest.count));
  return parts;
}

std::vector<Array> cut_evenly(const char* name, const Array& a, std::int64_t sections, int axis,
                              bool equal) {
  check_defined(name, a);
  int along = normalize_axis(name, axis, a.ndim());
  std::int64_t extent = a.shape()[along];
  if (sections < 1) {
    throw ValueError(fmt::format("{}: {} sections are fewer than one", name, sections));
  }
  if (equal && extent % sections != 0) {
    throw ShapeError(fmt::format("{}: axis {} of {} does not make {} equal parts; use array_split",
                                 name, along, a.view().describe(), sections));
  }
  auto parts = host_list<Array>(name, sections);
  std::int64_t start = 0;
  for (std::int64_t i = 0; i < sections; ++i) {
    std::int64_t count = extent / sections + (i < extent % sections ? 1 : 0);
    parts.push_back(slice_along(a, along, start, count));
    start += count;
  }
  return parts;
}

std::vector<Array> cut_at(const char* name, const Array& a, const IntegerList& where, int axis,
                          bool equal) {
  if (where.single()) return cut_evenly(name, a, where.values()[0], axis, equal);
  return cut(name, a, where.values(), axis);
}

// The axis of hsplit, vsplit and dsplit, after the check that `a` has it.
int axis_of(const char* name, const Array& a, int axis, int least) {
  check_defined(name, a);
  if (a.ndim() >= least) return axis;
  throw ShapeError(
      fmt::format("{}: {} has fewer than {} dimensions", name, a.view().describe(), least));
}

}  // namespace

std::vector<Array> split(const Array& a, const IntegerList& where, int axis) {
  return cut_at("split", a, where, axis, true);
}

std::vector<Array> array_split(const Array& a, const IntegerList& where, int axis) {
  return cut_at("array_split", a, where, axis, false);
}

#define RENSA_SPLIT(name, axis, least)                                    \
  std::vector<Array> name(const Array& a, const IntegerList& where) {     \
    return cut_at(#name, a, where, axis_of(#name, a, axis, least), true); \
  }
RENSA_SPLIT(hsplit, (a.ndim() > 1 ? 1 : 0), 1)
RENSA_SPLIT(vsplit, 0, 2)
RENSA_SPLIT(dsplit, 2, 3)
#undef RENSA_SPLIT

std::vector<Array> unstack(const Array& a, int axis) {
  check_defined("unstack", a);
  int along = normalize_axis("unstack", axis, a.ndim());
  auto parts = host_list<Array>("unstack", a.shape()[along]);
  for (std::int64_t i = 0; i < a.shape()[along]; ++i) {
    parts.push_back(slice_along(a, along, i, 1).squeeze(along));
  }
  return parts;
}

}  // namespace xp

}  // namespace rensa

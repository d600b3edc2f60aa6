// Removing parts of arrays and inserting others.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "rensa/array/indexing_routines.h"
#include "rensa/array/internal.h"
#include "rensa/core/checked.h"
#include "rensa/core/error.h"
#include "rensa/core/host_memory.h"

namespace rensa::xp {

using rensa::detail::check_defined;
using rensa::detail::copy_parts;
using rensa::detail::new_array;
using rensa::detail::slice_along;
using rensa::detail::working_axis;

namespace {

// `index` counted from the front, in [0, last].
std::int64_t place_of(const char* name, std::int64_t index, std::int64_t last, const Array& a,
                      int axis) {
  std::int64_t extent = a.shape()[axis];
  if (index < -extent || index > last) {
    throw IndexError(fmt::format("{}: index {} is out of bounds for axis {} with size {}: {}", name,
                                 index, axis, extent, a.view().describe()));
  }
  return index < 0 ? index + extent : index;
}

// `a` without [begin, end) of an axis.
Array without(const Array& a, int axis, std::int64_t begin, std::int64_t end) {
  std::int64_t extent = a.shape()[axis];
  Shape shape = a.shape();
  shape[axis] -= end - begin;
  Array out = new_array(shape, a.dtype(), a.device());
  copy_parts("delete", {{slice_along(a, axis, 0, begin), slice_along(out, axis, 0, begin)},
                        {slice_along(a, axis, end, extent - end),
                         slice_along(out, axis, begin, extent - end)}});
  return out;
}

Array keep_marked(const Array& a, int axis, const std::vector<std::uint8_t>& keep) {
  auto kept = host_list<std::int64_t>("delete", std::count(keep.begin(), keep.end(), 1));
  for (std::size_t i = 0; i < keep.size(); ++i) {
    if (keep[i]) kept.push_back(static_cast<std::int64_t>(i));
  }
  return take(a, array(kept, a.device()), axis);
}

// A mark for each place of an axis, all set.
std::vector<std::uint8_t> marks(const Array& a, int axis) {
  auto keep = host_vector<std::uint8_t>("delete", a.shape()[axis]);
  std::fill(keep.begin(), keep.end(), 1);
  return keep;
}

}  // namespace

// --- delete ---
Array delete_(const Array& a, std::int64_t index, OptionalAxis axis) {
  auto [in, place] = working_axis("delete", a, axis);
  std::int64_t at = place_of("delete", index, in.shape()[place] - 1, in, place);
  return without(in, place, at, at + 1);
}

Array delete_(const Array& a, const Slice& slice, OptionalAxis axis) {
  auto [in, place] = working_axis("delete", a, axis);
  Slice::Range range = slice.over(in.shape()[place]);
  if (range.count == 0) return in.copy();
  std::int64_t last = range.start + (range.count - 1) * range.step;
  if (range.step == 1 || range.step == -1) {
    return without(in, place, std::min(range.start, last), std::max(range.start, last) + 1);
  }
  std::vector<std::uint8_t> keep = marks(in, place);
  for (std::int64_t i = 0; i < range.count; ++i) {
    keep[static_cast<std::size_t>(range.start + i * range.step)] = 0;
  }
  return keep_marked(in, place, keep);
}

Array delete_(const Array& a, std::span<const std::int64_t> indices, OptionalAxis axis) {
  if (indices.size() == 1) return delete_(a, indices[0], axis);
  auto [in, place] = working_axis("delete", a, axis);
  std::vector<std::uint8_t> keep = marks(in, place);
  for (std::int64_t index : indices) {
    std::int64_t at = place_of("delete", index, in.shape()[place] - 1, in, place);
    keep[static_cast<std::size_t>(at)] = 0;
  }
  return keep_marked(in, place, keep);
}

Array delete_(const Array& a, std::initializer_list<std::int64_t> indices, OptionalAxis axis) {
  return delete_(a, std::span<const std::int64_t>(indices.begin(), indices.size()), axis);
}

Array delete_(const Array& a, const Array& indices, OptionalAxis axis) {
  check_defined("delete", indices);
  if (dtype_kind(indices.dtype()) == 'f' || dtype_kind(indices.dtype()) == 'c') {
    throw DtypeError(
        fmt::format("delete: {} is not an index: it has to be of an integer dtype or "
                    "a mask",
                    indices.view().describe()));
  }
  if (indices.dtype() != bool_) return delete_(a, indices.to_vector<std::int64_t>(), axis);
  auto [in, place] = working_axis("delete", a, axis);
  if (indices.shape() != Shape{in.shape()[place]}) {
    throw ShapeError(fmt::format("delete: the mask {} does not fit axis {} of {}",
                                 indices.view().describe(), place, in.view().describe()));
  }
  return keep_marked(in, place, logical_not(indices).to_vector<std::uint8_t>());
}

// --- insert ---
namespace {

Array insert_one(const Array& a, std::int64_t index, const Array& values, OptionalAxis axis) {
  auto [in, place] = working_axis("insert", a, axis);
  check_defined("insert", values);
  check_same_device("insert", in, values);
  std::int64_t extent = in.shape()[place], at = place_of("insert", index, extent, in, place);
  // The values' first axis is the inserted one, as in a[:, index] = values.
  Array added = values;
  while (added.ndim() < in.ndim()) added = added.expand_dims(0);
  added = moveaxis(added, 0, place);
  Shape inserted = in.shape(), shape = in.shape();
  inserted[place] = added.shape()[place];
  shape[place] += inserted[place];
  added = added.broadcast_to(inserted);
  Array out = new_array(shape, in.dtype(), in.device());
  copy_parts("insert", {{slice_along(in, place, 0, at), slice_along(out, place, 0, at)},
                        {added, slice_along(out, place, at, inserted[place])},
                        {slice_along(in, place, at, extent - at),
                         slice_along(out, place, at + inserted[place], extent - at)}});
  return out;
}

}  // namespace

Array insert(const Array& a, const IntegerList& list, const Array& values, OptionalAxis axis) {
  const std::vector<std::int64_t>& indices = list.values();
  if (list.single()) return insert_one(a, indices[0], values, axis);
  auto [in, place] = working_axis("insert", a, axis);
  check_defined("insert", values);
  check_same_device("insert", in, values);
  std::int64_t extent = in.shape()[place];
  Shape inserted = in.shape();
  inserted[place] = static_cast<std::int64_t>(indices.size());
  if (indices.size() == 1) {  // several values may stand in front of the one index
    Array added = values;
    while (added.ndim() < in.ndim()) added = added.expand_dims(0);
    return insert_one(in, indices[0], moveaxis(added, place, 0), place);
  }
  std::vector<std::int64_t> places, order(indices.size());
  for (std::int64_t index : indices) places.push_back(place_of("insert", index, extent, in, place));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t x, std::int64_t y) {
    return places[static_cast<std::size_t>(x)] < places[static_cast<std::size_t>(y)];
  });
  // The result's rows as rows of (a, values) joined.
  auto count = static_cast<std::int64_t>(indices.size());
  auto rows = host_list<std::int64_t>("insert", checked_add("insert", extent, count));
  std::size_t next = 0;
  for (std::int64_t i = 0; i <= extent; ++i) {
    for (; next < order.size() && places[static_cast<std::size_t>(order[next])] == i; ++next) {
      rows.push_back(extent + order[next]);
    }
    if (i < extent) rows.push_back(i);
  }
  Array added = values.astype(in.dtype(), false).broadcast_to(inserted);
  return take(concatenate({in, added}, place), array(rows, in.device()), place);
}

// --- trim_zeros ---
Array trim_zeros(const Array& a, std::string_view trim, OptionalAxis axis) {
  check_defined("trim_zeros", a);
  bool front = trim.find_first_of("fF") != trim.npos, back = trim.find_first_of("bB") != trim.npos;
  if (trim.empty() || trim.size() != static_cast<std::size_t>(front) + back) {
    throw ValueError(
        fmt::format("trim_zeros: trim is \"{}\"; it has to be \"f\", \"b\" or \"fb\"", trim));
  }
  int only = axis.given() ? normalize_axis("trim_zeros", axis.axis(), a.ndim()) : -1;
  Array result = a, truth = a.astype(bool_, false);
  for (int i = 0; i < a.ndim(); ++i) {
    if (only >= 0 && i != only) continue;
    unsigned others = ((1u << a.ndim()) - 1) & ~(1u << i);
    std::vector<bool> marked =
        rensa::detail::reduce_axes(reduction::any, truth, others).to_vector<bool>();
    auto first = std::find(marked.begin(), marked.end(), true);
    auto last = std::find(marked.rbegin(), marked.rend(), true);
    std::int64_t begin = 0, end = a.shape()[i];
    if (first == marked.end()) end = 0;  // nothing but zeros
    else if (front) begin = first - marked.begin();
    if (first != marked.end() && back) end = marked.rend() - last;
    result = slice_along(result, i, begin, end - begin);
  }
  return result;
}

}  // namespace rensa::xp

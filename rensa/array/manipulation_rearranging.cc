// Repeating, turning and shifting arrays.
#include <fmt/format.h>

#include <algorithm>

#include "rensa/array/indexing_routines.h"
#include "rensa/array/internal.h"
#include "rensa/core/checked.h"
#include "rensa/core/error.h"
#include "rensa/core/host_memory.h"
#include "rensa/device/launcher.h"
#include "rensa/operations/indexing/indexing.h"

namespace rensa {

std::pair<Array, int> detail::working_axis(const char* operation, const Array& a,
                                           OptionalAxis axis) {
  check_defined(operation, a);
  if (!axis.given()) return {a.reshape({a.size()}), 0};
  return {a, normalize_axis(operation, axis.axis(), a.ndim())};
}

namespace xp {

using rensa::detail::check_defined;
using rensa::detail::copy_elements;
using rensa::detail::copy_parts;
using rensa::detail::CopyPair;
using rensa::detail::new_array;
using rensa::detail::new_view;
using rensa::detail::slice_along;
using rensa::detail::working_axis;

// --- repeating ---
namespace {

// `a` as (what is in front of axis, its extent, what is behind it), contiguous.
Array as_three_axes(const Array& a, int axis) {
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= a.shape()[i];
  for (int i = axis + 1; i < a.ndim(); ++i) inner *= a.shape()[i];
  return a.ascontiguous().reshape({outer, a.shape()[axis], inner});
}

void check_repeats(const char* name, std::int64_t repeats) {
  if (repeats >= 0) return;
  throw ValueError(fmt::format("{}: {} repetitions are fewer than none", name, repeats));
}

// One copy: each repeated axis is two, the outer one with stride 0 on the side of `a`. False where
// that takes more axes than there are.
bool tile_at_once(const Array& a, const Shape& repetitions, const Array& out) {
  std::vector<std::int64_t> shape, strides;
  for (int i = 0; i < a.ndim(); ++i) {
    if (repetitions[i] != 1) {
      shape.push_back(repetitions[i]);
      strides.push_back(0);
    }
    if (repetitions[i] == 1 || a.shape()[i] != 1) {
      shape.push_back(a.shape()[i]);
      strides.push_back(a.strides()[i]);
    }
  }
  if (shape.size() > static_cast<std::size_t>(kMaxNdim)) return false;
  Array in = new_view(a, 0, Shape(shape), Shape(strides));
  copy_elements("tile", in, out.reshape(in.shape()));
  return true;
}

}  // namespace

Array tile(const Array& a, const Shape& repetitions) {
  check_defined("tile", a);
  Shape times = repetitions;
  for (std::int64_t n : times) check_repeats("tile", n);
  while (times.ndim() < a.ndim()) times.insert(0, 1);
  Array in = a;
  while (in.ndim() < times.ndim()) in = in.expand_dims(0);
  Shape shape = in.shape();
  for (int i = 0; i < shape.ndim(); ++i) shape[i] = checked_multiply("tile", shape[i], times[i]);
  Array out = new_array(shape, a.dtype(), a.device());
  if (out.size() == 0 || tile_at_once(in, times, out)) return out;
  for (int i = 0; i < times.ndim(); ++i) {  // one axis after the other
    if (times[i] == 1) continue;
    Shape grown = in.shape();
    grown[i] *= times[i];
    Array block = as_three_axes(in, i);
    block = block.reshape({block.shape(0), 1, block.shape(1) * block.shape(2)});
    in = block.broadcast_to({block.shape(0), times[i], block.shape(2)}).copy().reshape(grown);
  }
  return in;
}

Array tile(const Array& a, std::int64_t repetitions) { return tile(a, Shape{repetitions}); }

namespace {

Array repeat_all(const Array& a, std::int64_t repeats, OptionalAxis axis) {
  check_repeats("repeat", repeats);
  auto [in, place] = working_axis("repeat", atleast_1d(a), axis);
  Shape shape = in.shape();
  shape[place] = checked_multiply("repeat", shape[place], repeats);
  Array out = new_array(shape, in.dtype(), in.device());
  if (out.size() == 0) return out;
  int split = place;
  if (in.ndim() == kMaxNdim) {
    in = as_three_axes(in, place);
    split = 1;
  }
  Array elements = in.expand_dims(split + 1);
  Shape repeated = elements.shape();
  repeated[split + 1] = repeats;
  copy_elements("repeat", elements, out.reshape(repeated));
  return out;
}

}  // namespace

Array repeat(const Array& a, const IntegerList& repeats, OptionalAxis axis) {
  const std::vector<std::int64_t>& counts = repeats.values();
  if (counts.size() == 1) return repeat_all(a, counts[0], axis);
  auto [in, place] = working_axis("repeat", atleast_1d(a), axis);
  if (static_cast<std::int64_t>(counts.size()) != in.shape()[place]) {
    throw ShapeError(fmt::format("repeat: {} counts for axis {} of {}", counts.size(), place,
                                 in.view().describe()));
  }
  std::int64_t total = 0;
  for (std::int64_t count : counts) {
    check_repeats("repeat", count);
    total = checked_add("repeat", total, count);
  }
  auto indices = host_list<std::int64_t>("repeat", total);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    indices.insert(indices.end(), static_cast<std::size_t>(counts[i]),
                   static_cast<std::int64_t>(i));
  }
  return take(in, array(indices, in.device()), place);
}

Array repeat(const Array& a, const Array& counts, OptionalAxis axis) {
  check_defined("repeat", counts);
  if (counts.ndim() > 1 || promote_types(counts.dtype(), int64) != int64) {
    throw DtypeError(
        fmt::format("repeat: {} are not counts: they have to be integers in one "
                    "dimension",
                    counts.view().describe()));
  }
  return repeat(a, counts.to_vector<std::int64_t>(), axis);
}

// --- turning and shifting ---
namespace {

Array flipped(const Array& a, int axis) {
  std::int64_t extent = a.shape()[axis];
  return slice_along(a, axis, extent - 1, extent, -1);
}

// The parts that an axis falls into when it is shifted in a circle.
struct Shifted {
  std::int64_t from, to, count;
};

}  // namespace

Array flip(const Array& a, Axes axis) {
  check_defined("flip", a);
  unsigned axes = axis.mask("flip", a.ndim());
  Array result = a;
  for (int i = 0; i < a.ndim(); ++i) {
    if (axes >> i & 1) result = flipped(result, i);
  }
  return result;
}

Array fliplr(const Array& a) {
  check_defined("fliplr", a);
  return flipped(a, normalize_axis("fliplr", 1, a.ndim()));
}

Array flipud(const Array& a) {
  check_defined("flipud", a);
  return flipped(a, normalize_axis("flipud", 0, a.ndim()));
}

Array roll(const Array& a, std::int64_t shift) {
  check_defined("roll", a);
  return roll(a.reshape({a.size()}), shift, 0).reshape(a.shape());
}

Array roll(const Array& a, std::int64_t shift, int axis) {
  return roll(a, Shape{shift}, Shape{axis});
}

Array roll(const Array& a, const Shape& shifts, const Shape& axes) {
  check_defined("roll", a);
  if (shifts.size() != axes.size() && shifts.size() != 1 && axes.size() != 1) {
    throw ValueError(
        fmt::format("roll: shifts {} and axes {} differ in number", shifts.str(), axes.str()));
  }
  Shape by = Shape::filled(a.ndim(), 0);
  for (int i = 0; i < std::max(shifts.size(), axes.size()); ++i) {
    int axis = normalize_axis("roll", axes[axes.size() == 1 ? 0 : i], a.ndim());
    std::int64_t extent = std::max<std::int64_t>(a.shape()[axis], 1);
    std::int64_t shift = shifts[shifts.size() == 1 ? 0 : i] % extent;
    if (shift < 0) shift += extent;
    by[axis] += by[axis] < extent - shift ? shift : shift - extent;
  }
  Array out = new_array(a.shape(), a.dtype(), a.device());
  // Every axis that is shifted has two parts: one copy for each combination.
  std::vector<CopyPair> parts;
  for (unsigned part = 0; part < 1u << a.ndim(); ++part) {
    Array from = a, to = out;
    bool exists = true;
    for (int i = 0; i < a.ndim() && exists; ++i) {
      std::int64_t head = a.shape()[i] - by[i];  // elements that do not go round
      Shifted piece = part >> i & 1 ? Shifted{head, 0, by[i]} : Shifted{0, by[i], head};
      exists = !(part >> i & 1) || by[i] > 0;
      from = slice_along(from, i, piece.from, piece.count);
      to = slice_along(to, i, piece.to, piece.count);
    }
    if (exists) parts.push_back({from, to});
  }
  copy_parts("roll", parts);
  return out;
}

Array rot90(const Array& a, std::int64_t k, const Shape& axes) {
  check_defined("rot90", a);
  if (axes.size() != 2) {
    throw ValueError(fmt::format("rot90: axes {} are not two", axes.str()));
  }
  int first = normalize_axis("rot90", axes[0], a.ndim());
  int second = normalize_axis("rot90", axes[1], a.ndim());
  if (first == second) {
    throw ValueError(
        fmt::format("rot90: axes {} of {} are one axis", axes.str(), a.view().describe()));
  }
  switch ((k % 4 + 4) % 4) {
    case 1: return flipped(a, second).swapaxes(first, second);
    case 2: return flipped(flipped(a, first), second);
    case 3: return flipped(a.swapaxes(first, second), second);
    default: return a;
  }
}

Array resize(const Array& a, const Shape& shape) {
  check_defined("resize", a);
  Array out = new_array(shape, a.dtype(), a.device());
  std::int64_t n = a.size(), total = out.size();
  if (n == 0) rensa::detail::fill_elements("resize", out, 0);
  if (n == 0 || total == 0) return out;
  Array flat = a.ravel(), to = out.reshape({total});
  std::int64_t whole = total / n * n, rest = total - whole;
  copy_parts("resize", {{flat.broadcast_to({total / n, n}),
                         slice_along(to, 0, 0, whole).reshape({total / n, n})},
                        {slice_along(flat, 0, 0, rest), slice_along(to, 0, whole, rest)}});
  return out;
}

}  // namespace xp

}  // namespace rensa

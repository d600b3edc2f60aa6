// Padding: by one number in one pass. Else the array goes into the middle of a new one, then the
// border grows axis by axis, each axis padding what the earlier ones have made.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "rensa/array/internal.h"
#include "rensa/array/ufuncs/rounding.h"
#include "rensa/core/checked.h"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"
#include "rensa/operations/pad/pad.h"

namespace rensa::xp {

template <class T> PadPairs<T>::PadPairs(T both) : pairs_{{both, both}} {}
template <class T> PadPairs<T>::PadPairs(T before, T after) : pairs_{{before, after}} {}
template <class T> PadPairs<T>::PadPairs(std::pair<T, T> all) : pairs_{all} {}
template <class T>
PadPairs<T>::PadPairs(std::initializer_list<std::pair<T, T>> pairs) : pairs_(pairs) {}
template class PadPairs<Scalar>;
template class PadPairs<std::int64_t>;

using rensa::detail::copy_elements;
using rensa::detail::fill_elements;
using rensa::detail::reduce_axes;
using rensa::detail::slice_along;

namespace {

template <class T>
std::vector<std::pair<T, T>> pairs_for(const char* what, const PadPairs<T>& pairs, const Array& a) {
  auto ndim = static_cast<std::size_t>(a.ndim());
  if (pairs.pairs().size() == 1) return std::vector<std::pair<T, T>>(ndim, pairs.pairs()[0]);
  if (pairs.pairs().size() == ndim) return pairs.pairs();
  throw ShapeError(fmt::format("pad: {} pairs of {} for the {} axes of {}", pairs.pairs().size(),
                               what, ndim, a.view().describe()));
}

std::vector<std::pair<std::int64_t, std::int64_t>> counts_for(const char* what,
                                                              const PadWidth& pairs,
                                                              const Array& a) {
  for (const auto& [before, after] : pairs.pairs()) {
    if (before < 0 || after < 0) {
      throw ValueError(fmt::format("pad: {} ({}, {}) is negative", what, before, after));
    }
  }
  return pairs_for(what, pairs, a);
}

// One axis of the padded array while its two borders are filled. `area` has the borders of earlier
// axes and of this one, not those of later axes.
struct Border {
  Array area;
  int axis;
  std::int64_t left, right;  // what is still to fill

  std::int64_t extent() const { return area.shape()[axis]; }
  std::int64_t inner() const { return extent() - left - right; }
  Array part(std::int64_t start, std::int64_t count, std::int64_t step = 1) const {
    return slice_along(area, axis, start, count, step);
  }
  Array left_part() const { return part(0, left); }
  Array right_part() const { return part(extent() - right, right); }
  Array left_edge() const { return part(left, 1); }
  Array right_edge() const { return part(extent() - right - 1, 1); }
};

void fill_constant(const Border& b, const std::pair<Scalar, Scalar>& values) {
  fill_elements("pad", b.left_part(), values.first);
  fill_elements("pad", b.right_part(), values.second);
}

void fill_edge(const Border& b) {
  copy_elements("pad", b.left_edge(), b.left_part());
  copy_elements("pad", b.right_edge(), b.right_part());
}

Array ramp(Scalar end, const Array& edge, int axis, std::int64_t width, Dtype dtype) {
  Array start = full({}, end, edge.device());
  return linspace(start, edge.squeeze(axis), width,
                  {.endpoint = false, .dtype = dtype, .axis = axis});
}

void fill_ramp(const Border& b, const std::pair<Scalar, Scalar>& ends) {
  Dtype dtype = b.area.dtype();
  if (b.left > 0) {
    copy_elements("pad", ramp(ends.first, b.left_edge(), b.axis, b.left, dtype), b.left_part());
  }
  if (b.right > 0) {
    Array falling = ramp(ends.second, b.right_edge(), b.axis, b.right, dtype);
    copy_elements("pad", slice_along(falling, b.axis, b.right - 1, b.right, -1), b.right_part());
  }
}

// The reduction of a part of the array as the border takes it: means of integers are rounded.
Array statistic(Reduction reduction, const Border& b, std::int64_t start, std::int64_t count) {
  if (count == 0 && reduction != reduction::mean) {
    throw ValueError("pad: a stat_length of 0 leaves no value to take");
  }
  Array value = reduce_axes(reduction, b.part(start, count), 1u << b.axis);
  char kind = dtype_kind(b.area.dtype());
  return reduction == reduction::mean && (kind == 'i' || kind == 'u') ? rint(value) : value;
}

void fill_statistic(Reduction reduction, const Border& b,
                    const std::pair<std::int64_t, std::int64_t>& lengths) {
  std::int64_t inner = b.inner(), last = b.extent() - b.right;
  std::int64_t before = std::min(lengths.first, inner), after = std::min(lengths.second, inner);
  Array value = statistic(reduction, b, b.left, before);
  copy_elements("pad", value, b.left_part());
  if (before != inner || after != inner) value = statistic(reduction, b, last - after, after);
  copy_elements("pad", value, b.right_part());
}

Array mirrored_in(const Array& edge, const Array& values) { return edge * 2 - values; }

// Mirrors what is filled into both borders until they are full. Only whole periods of the original
// array are mirrored.
void fill_mirrored(Border b, std::int64_t period, bool with_edge, bool odd) {
  std::int64_t edge = with_edge ? 1 : 0;
  while (b.left > 0 || b.right > 0) {
    std::int64_t length =
        with_edge ? b.inner() / period * period : (b.inner() - 1) / (period - 1) * (period - 1);
    std::int64_t left = std::min(length, b.left), right = std::min(length, b.right);
    if (left > 0) {
      Array values = b.part(b.left - edge + left, left, -1);
      if (odd) values = mirrored_in(b.left_edge(), values);
      copy_elements("pad", values, b.part(b.left - left, left));
      b.left -= left;
    }
    if (right > 0) {
      Array values = b.part(b.extent() - b.right + edge - 2, right, -1);
      if (odd) values = mirrored_in(b.right_edge(), values);
      copy_elements("pad", values, b.part(b.extent() - b.right, right));
      b.right -= right;
    }
  }
}

void fill_wrapped(Border b, std::int64_t original) {
  while (b.left > 0 || b.right > 0) {
    std::int64_t period = b.inner() / original * original;
    std::int64_t left = std::min(period, b.left), right = std::min(period, b.right);
    std::int64_t end = b.extent() - b.right;
    copy_elements("pad", b.part(b.left + period - left, left), b.part(b.left - left, left));
    copy_elements("pad", b.part(end - period, right), b.part(end, right));
    b.left -= left;
    b.right -= right;
  }
}

// `constant` and `empty` stand first: they alone can pad an axis without elements.
enum class PadMode {
  constant,
  empty,
  edge,
  linear_ramp,
  maximum,
  mean,
  minimum,
  reflect,
  symmetric,
  wrap
};

PadMode parse_mode(std::string_view mode) {
  constexpr std::string_view kNames[] = {"constant", "empty",   "edge",    "linear_ramp", "maximum",
                                         "mean",     "minimum", "reflect", "symmetric",   "wrap"};
  const auto* found = std::find(std::begin(kNames), std::end(kNames), mode);
  if (found != std::end(kNames)) return static_cast<PadMode>(found - std::begin(kNames));
  throw ValueError(
      fmt::format("pad: there is no mode \"{}\"; the modes are {}", mode, fmt::join(kNames, ", ")));
}

// What a mode needs to know of every axis.
struct PadValues {
  std::vector<std::pair<Scalar, Scalar>> numbers;              // constant, linear_ramp
  std::vector<std::pair<std::int64_t, std::int64_t>> lengths;  // statistics
  bool odd = false;
};

PadValues values_for(PadMode mode, const PadOptions& options, const Array& a) {
  PadValues values;
  values.odd = options.odd;
  values.numbers = mode == PadMode::linear_ramp
                       ? pairs_for("end_values", options.end_values, a)
                       : pairs_for("constant_values", options.constant_values, a);
  constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();
  values.lengths = counts_for("stat_length", options.stat_length.value_or(PadWidth(kAll)), a);
  if (mode != PadMode::constant) return values;
  for (const auto& [before, after] : values.numbers) {
    rensa::detail::check_in_range("pad", before, a.dtype());
    rensa::detail::check_in_range("pad", after, a.dtype());
  }
  return values;
}

void fill_border(PadMode mode, const Border& b, const PadValues& values, std::int64_t extent) {
  auto axis = static_cast<std::size_t>(b.axis);
  switch (mode) {
    case PadMode::empty: return;
    case PadMode::constant: return fill_constant(b, values.numbers[axis]);
    case PadMode::edge: return fill_edge(b);
    case PadMode::linear_ramp: return fill_ramp(b, values.numbers[axis]);
    case PadMode::maximum: return fill_statistic(reduction::max, b, values.lengths[axis]);
    case PadMode::minimum: return fill_statistic(reduction::min, b, values.lengths[axis]);
    case PadMode::mean: return fill_statistic(reduction::mean, b, values.lengths[axis]);
    case PadMode::wrap: return fill_wrapped(b, extent);
    case PadMode::reflect:
    case PadMode::symmetric:
      if (extent == 1) return fill_edge(b);
      return fill_mirrored(b, extent, mode == PadMode::symmetric, values.odd);
  }
}

// Whether every border has one and the same number, not a floating one among integers, which fills
// fit to what those hold.
bool is_uniform(const PadValues& values, Dtype dtype) {
  if (values.numbers.empty()) return false;
  char kind = dtype_kind(dtype);
  if (values.numbers[0].first.kind() == 'f' && (kind == 'i' || kind == 'u')) return false;
  auto same = [&](Scalar x) {
    Scalar first = values.numbers[0].first;
    return x.kind() == first.kind() && x.integer() == first.integer() && x.real() == first.real() &&
           x.imag() == first.imag();
  };
  return std::all_of(values.numbers.begin(), values.numbers.end(),
                     [&](const auto& pair) { return same(pair.first) && same(pair.second); });
}

// The borders, all of one number, and what is between them.
void pad_by_number(const Array& a, const std::vector<std::pair<std::int64_t, std::int64_t>>& widths,
                   Scalar number, const Array& out) {
  bool rows = a.strides()[a.ndim() - 1] == a.itemsize();
  Array in = rows ? a : a.ascontiguous();
  operations::Pad op("pad");
  op.value = number;
  for (std::size_t i = 0; i < widths.size(); ++i) op.before[i] = widths[i].first;
  op.in = in.operand();
  op.out = out.operand();
  launch(op);
}

}  // namespace

Array pad(const Array& a, const PadWidth& width, std::string_view mode_name,
          const PadOptions& options) {
  rensa::detail::check_defined("pad", a);
  PadMode mode = parse_mode(mode_name);
  auto widths = counts_for("pad_width", width, a);
  PadValues values = values_for(mode, options, a);
  Shape shape = a.shape();
  for (int i = 0; i < a.ndim(); ++i) {
    const auto& [before, after] = widths[static_cast<std::size_t>(i)];
    if (a.shape()[i] == 0 && (before > 0 || after > 0) && mode > PadMode::empty) {
      throw ValueError(
          fmt::format("pad: axis {} of {} is empty and has nothing to pad it with; "
                      "use \"constant\"",
                      i, a.view().describe()));
    }
    shape[i] = checked_add("pad", checked_add("pad", shape[i], before), after);
  }
  Array out = rensa::detail::new_array(shape, a.dtype(), a.device());
  if (out.size() == 0) return out;
  if (mode == PadMode::constant && is_uniform(values, a.dtype())) {
    pad_by_number(a, widths, values.numbers[0].first, out);
    return out;
  }
  auto inner = [&](const Array& view, int axis) {
    return slice_along(view, axis, widths[static_cast<std::size_t>(axis)].first, a.shape()[axis]);
  };
  Array middle = out;
  for (int i = 0; i < a.ndim(); ++i) middle = inner(middle, i);
  copy_elements("pad", a, middle);
  for (int i = 0; i < a.ndim(); ++i) {
    const auto& [before, after] = widths[static_cast<std::size_t>(i)];
    if (before == 0 && after == 0) continue;
    Array area = out;
    for (int later = i + 1; later < a.ndim(); ++later) area = inner(area, later);
    fill_border(mode, {area, i, before, after}, values, a.shape()[i]);
  }
  return out;
}

}  // namespace rensa::xp

#include "rensa/array/signal.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "rensa/array/indexing_routines.h"
#include "rensa/array/internal.h"
#include "rensa/array/sorting.h"
#include "rensa/array/ufuncs/trigonometric.h"
#include "rensa/core/checked.h"
#include "rensa/core/error.h"
#include "rensa/core/functors.h"
#include "rensa/device/launcher.h"
#include "rensa/operations/signal/signal.h"

namespace rensa::xp {

using rensa::detail::check_defined;
using rensa::detail::new_array;
using rensa::detail::slice_along;

// --- convolution ---
namespace {

// So few sums of so many products are a product of matrices, which is spread over the device.
constexpr std::int64_t kFewSums = 16;

Array reversed(const Array& a) { return slice_along(a, 0, a.size() - 1, a.size(), -1); }

Array sequence(const char* name, const Array& a) {
  check_defined(name, a);
  Array flat = a.ndim() == 0 ? a.reshape({1}) : a;
  if (flat.ndim() != 1) {
    throw ShapeError(fmt::format("{}: {} does not have one dimension", name, a.view().describe()));
  }
  if (flat.size() == 0) throw ShapeError(fmt::format("{}: an operand is empty", name));
  return flat;
}

// The sums at every shift of `v`, the shorter one.
Array correlate_with(const char* name, const Array& a, const Array& v, std::string_view mode) {
  std::int64_t n = a.size(), m = v.size(), size = n, offset = m / 2;
  if (mode == "full") {
    size = checked_add(name, n, m - 1);
    offset = m - 1;
  } else if (mode == "valid") {
    size = n - m + 1;
    offset = 0;
  } else if (mode != "same") {
    throw ValueError(fmt::format("{}: mode is \"{}\"; it has to be \"full\", \"same\" or \"valid\"",
                                 name, mode));
  }
  Dtype dtype = promote_types(a.dtype(), v.dtype());
  if (mode == "valid" && size <= kFewSums && m > kFewSums && dtype != bool_) {
    Array windows = lib::stride_tricks::sliding_window_view(a, m, 0);
    return matmul(windows.astype(dtype).ascontiguous(), v.astype(dtype, false));
  }
  Array out = new_array({size}, dtype, a.device());
  operations::Correlate op(name);
  op.compute = dtype;
  op.offset = offset;
  op.in = a.operand();
  op.taps = v.operand();
  op.out = out.operand();
  launch(op);
  return out;
}

}  // namespace

Array convolve(const Array& a, const Array& v, std::string_view mode) {
  Array longer = sequence("convolve", a), shorter = sequence("convolve", v);
  check_same_device("convolve", a, v);
  if (shorter.size() > longer.size()) std::swap(longer, shorter);
  return correlate_with("convolve", longer, reversed(shorter), mode);
}

Array correlate(const Array& a, const Array& v, std::string_view mode) {
  Array x = sequence("correlate", a), y = sequence("correlate", v);
  check_same_device("correlate", a, v);
  if (dtype_kind(y.dtype()) == 'c') y = conjugate(y);
  if (x.size() >= y.size()) return correlate_with("correlate", x, y, mode);
  // The shorter one is shifted; what that sums is the wanted in reverse.
  return reversed(correlate_with("correlate", y, x, mode));
}

// --- interpolation ---
namespace {

// All points in one period, in order, with the last one once more in front and the first behind.
Array interp_round(const Array& x, const Array& points, const Array& values, double period) {
  if (period == 0) throw ValueError("interp: the period cannot be 0");
  period = std::abs(period);
  Array known = remainder(points.astype(float64, false), period), order = argsort(known);
  known = take(known, order, 0);
  Array heights = take(values, order, 0);
  std::int64_t last = known.size() - 1;
  auto point = [](const Array& a, std::int64_t i) { return slice_along(a, 0, i, 1); };
  return interp(remainder(x.astype(float64, false), period),
                concatenate({point(known, last) - period, known, point(known, 0) + period}),
                concatenate({point(heights, last), heights, point(heights, 0)}));
}

}  // namespace

Array interp(const Array& x, const Array& points, const Array& values,
             const InterpOptions& options) {
  for (const Array* a : {&x, &points, &values}) {
    check_defined("interp", *a);
    check_same_device("interp", x, *a);
  }
  if (points.ndim() != 1 || values.ndim() != 1 || points.size() != values.size() ||
      points.size() == 0) {
    throw ShapeError(
        fmt::format("interp: {} and {} are not points and their values, in one "
                    "dimension and as many",
                    points.view().describe(), values.view().describe()));
  }
  if (dtype_kind(x.dtype()) == 'c' || dtype_kind(points.dtype()) == 'c') {
    throw DtypeError(fmt::format("interp: {} or {} has no order", x.view().describe(),
                                 points.view().describe()));
  }
  if (options.period) return interp_round(x, points, values, *options.period);
  Dtype dtype = dtype_kind(values.dtype()) == 'c' ? complex128 : float64;
  Array at = x.astype(float64, false).ascontiguous();
  Array known = points.astype(float64, false).ascontiguous();
  Array heights = values.astype(dtype, false).ascontiguous();
  Array out = new_array(x.shape(), dtype, x.device());
  if (out.size() == 0) return out;
  operations::Interpolate op;
  op.has_before = options.left.has_value();
  op.has_after = options.right.has_value();
  op.before = options.left.value_or(0);
  op.after = options.right.value_or(0);
  op.x = at.operand();
  op.points = known.operand();
  op.values = heights.operand();
  op.out = out.operand();
  launch(op);
  return out;
}

// --- windows ---
namespace {

// The places 1 - m, 3 - m, ... m - 1 of a window's points over m - 1: from -1 to 1.
Array window_places(std::int64_t m, Placement device) {
  if (m <= 1) return zeros({std::max<std::int64_t>(m, 0)}, float64, device);
  return arange(1 - m, m, 2, float64, device) / static_cast<double>(m - 1);
}

}  // namespace

Array bartlett(std::int64_t m, Placement device) {
  return 1.0 - absolute(window_places(m, device));
}

Array blackman(std::int64_t m, Placement device) {
  Array angle = window_places(m, device) * std::numbers::pi;
  return cos(angle) * 0.5 + 0.42 + cos(angle * 2.0) * 0.08;
}

Array hamming(std::int64_t m, Placement device) {
  return cos(window_places(m, device) * std::numbers::pi) * 0.46 + 0.54;
}

Array hanning(std::int64_t m, Placement device) {
  return cos(window_places(m, device) * std::numbers::pi) * 0.5 + 0.5;
}

Array kaiser(std::int64_t m, double beta, Placement device) {
  Array window = new_array({std::max<std::int64_t>(m, 0)}, float64, cpu());
  auto* values = static_cast<double*>(window.data());
  beta = std::abs(beta);
  if (!std::isfinite(beta)) {
    rensa::detail::fill_elements("kaiser", window, std::nan(""));
    return window.to(device.device());
  }
  double whole = m::scaled_bessel_i0(beta);
  for (std::int64_t i = 0; i < window.size(); ++i) {
    double place = m == 1 ? 0 : 2 * static_cast<double>(i) / static_cast<double>(m - 1) - 1;
    double inner = beta * std::sqrt(std::max(0.0, 1 - place * place));
    values[i] = m::scaled_bessel_i0(inner) / whole * std::exp(inner - beta);
  }
  return window.to(device.device());
}

}  // namespace rensa::xp

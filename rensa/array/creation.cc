// Routines that make arrays.
#include <fmt/format.h>

#include <cmath>

#include "rensa/array/internal.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/launcher.h"
#include "rensa/device/operations.h"

namespace rensa {

Device Placement::device() const { return given_ ? device_ : ThreadState::current().device; }

namespace xp {

using rensa::detail::check_defined;
using rensa::detail::fill_elements;
using rensa::detail::new_array;

Array empty(const Shape& shape, Dtype dtype, Placement device) {
  return new_array(shape, dtype, device.device());
}

Array zeros(const Shape& shape, Dtype dtype, Placement device) {
  return full(shape, 0, dtype, device);
}

Array ones(const Shape& shape, Dtype dtype, Placement device) {
  return full(shape, 1, dtype, device);
}

Array full(const Shape& shape, Scalar value, Dtype dtype, Placement device) {
  rensa::detail::check_in_range("full", value, dtype);
  Array out = new_array(shape, dtype, device.device());
  fill_elements("full", out, value);
  return out;
}

Array full(const Shape& shape, Scalar value, Placement device) {
  return full(shape, value, value.default_dtype(), device);
}

Array empty_like(const Array& a) {
  check_defined("empty_like", a);
  return new_array(a.shape(), a.dtype(), a.device());
}

Array zeros_like(const Array& a) { return full_like(a, 0); }
Array ones_like(const Array& a) { return full_like(a, 1); }

Array full_like(const Array& a, Scalar value) {
  check_defined("full_like", a);
  return full(a.shape(), value, a.dtype(), a.device());
}

Array empty_pinned(const Shape& shape, Dtype dtype) {
  return rensa::detail::new_pinned_array(shape, dtype);
}

namespace {

std::int64_t arange_length(Scalar start, Scalar stop, Scalar step) {
  if (start.kind() == 'c' || stop.kind() == 'c' || step.kind() == 'c') {
    throw DtypeError("arange: complex numbers have no order");
  }
  bool integral = start.is_integral() && stop.is_integral() && step.is_integral();
  if (step.real() == 0) throw ValueError("arange: the step cannot be 0");
  if (!integral) {
    double length = std::ceil((stop.real() - start.real()) / step.real());
    if (!(length < 9e18)) {
      throw ValueError(fmt::format("arange: [{}, {}) by {} has no finite length", start.real(),
                                   stop.real(), step.real()));
    }
    return length > 0 ? static_cast<std::int64_t>(length) : 0;
  }
  Slice::Range range{start.integer(), 0, step.integer()};
  std::int64_t distance;
  if (__builtin_sub_overflow(stop.integer(), start.integer(), &distance)) {
    throw ValueError("arange: the interval is wider than int64");
  }
  if (range.step > 0 && distance > 0) range.count = (distance - 1) / range.step + 1;
  if (range.step < 0 && distance < 0) range.count = (distance + 1) / range.step + 1;
  return range.count;
}

}  // namespace

Array arange(Scalar start, Scalar stop, Scalar step, Dtype dtype, Placement device) {
  Array out = new_array({arange_length(start, stop, step)}, dtype, device.device());
  if (out.size() == 0) return out;
  Arange op;
  op.start = start;
  op.step = step;
  op.out = out.operand();
  launch(op);
  return out;
}

Array arange(Scalar start, Scalar stop, Scalar step, Placement device) {
  bool integral = start.is_integral() && stop.is_integral() && step.is_integral();
  return arange(start, stop, step, integral ? int64 : float64, device);
}

Array arange(Scalar stop, Dtype dtype, Placement device) {
  return arange(0, stop, 1, dtype, device);
}

Array arange(Scalar stop, Placement device) { return arange(0, stop, 1, device); }

Array linspace(double start, double stop, std::int64_t num, Dtype dtype, Placement device) {
  if (num < 0) throw ValueError(fmt::format("linspace: {} samples are fewer than none", num));
  // A few values, made on the host as NumPy makes them: the last one is `stop` exactly.
  std::vector<double> values(static_cast<std::size_t>(num));
  double step = num > 1 ? (stop - start) / static_cast<double>(num - 1) : 0;
  for (std::int64_t i = 0; i < num; ++i) {
    values[static_cast<std::size_t>(i)] = static_cast<double>(i) * step + start;
  }
  if (num > 1) values.back() = stop;
  return array(values, device).astype(dtype, false);
}

Array eye(std::int64_t n, Dtype dtype, Placement device) {
  Array out = zeros({n, n}, dtype, device);
  Array diagonal = rensa::detail::new_view(out, 0, {n}, {(n + 1) * itemsize(dtype)});
  fill_elements("eye", diagonal, 1);
  return out;
}

Array asarray(const Array& a, Dtype dtype) { return a.astype(dtype, false); }

void detail::throw_ragged(std::size_t expected, std::size_t row, std::size_t got) {
  throw ShapeError(
      fmt::format("array: row {} has {} values where the first row has {}", row, got, expected));
}

}  // namespace xp

}  // namespace rensa

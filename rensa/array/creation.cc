// Routines that make arrays: of one value, ranges, and copies.
#include "rensa/array/creation.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "rensa/array/internal.h"
#include "rensa/array/ufuncs/rounding.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/launcher.h"
#include "rensa/operations/arange/arange.h"

namespace rensa {

Device Placement::device() const { return given_ ? device_ : ThreadState::current().device; }

namespace xp {

using rensa::detail::check_defined;
using rensa::detail::fill_elements;
using rensa::detail::MemoryOrder;
using rensa::detail::new_array;

Array empty(const Shape& shape, Dtype dtype, Placement device) {
  return new_array(shape, dtype, device.device());
}

Array empty(const Shape& shape, const CreationOptions& o) {
  MemoryOrder memory("empty", o.order, shape.ndim());
  return memory.restored(
      new_array(memory.permuted(shape), o.dtype.value_or(float32), o.device.device()));
}

Array zeros(const Shape& shape, const CreationOptions& o) {
  return full(shape, 0, {.dtype = o.dtype.value_or(float32), .order = o.order, .device = o.device});
}

Array ones(const Shape& shape, const CreationOptions& o) {
  return full(shape, 1, {.dtype = o.dtype.value_or(float32), .order = o.order, .device = o.device});
}

Array full(const Shape& shape, Scalar value, const CreationOptions& o) {
  Dtype dtype = o.dtype.value_or(value.default_dtype());
  rensa::detail::check_in_range("full", value, dtype);
  MemoryOrder memory("full", o.order, shape.ndim());
  Array out = new_array(memory.permuted(shape), dtype, o.device.device());
  fill_elements("full", out, value);
  return memory.restored(out);
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

namespace {

// How an array like `a` lies. Of other axes only C and Fortran order can be taken over.
MemoryOrder order_like(const char* operation, const Array& a, const Like& like) {
  int ndim = like.shape ? (*like.shape).ndim() : a.ndim();
  if (ndim == a.ndim()) return MemoryOrder(a, like.order);
  return MemoryOrder(operation, like.order.letter() == 'K' ? 'C' : like.order.of(a), ndim);
}

Array new_array_like(const MemoryOrder& memory, const Array& a, const Like& like) {
  return new_array(memory.permuted(like.shape ? *like.shape : a.shape()),
                   like.dtype.value_or(a.dtype()), like.device.value_or(a.device()));
}

}  // namespace

Array empty_like(const Array& a, const Like& like) {
  check_defined("empty_like", a);
  MemoryOrder memory = order_like("empty_like", a, like);
  return memory.restored(new_array_like(memory, a, like));
}

Array zeros_like(const Array& a, const Like& like) { return full_like(a, 0, like); }
Array ones_like(const Array& a, const Like& like) { return full_like(a, 1, like); }

Array full_like(const Array& a, Scalar value, const Like& like) {
  check_defined("full_like", a);
  rensa::detail::check_in_range("full", value, like.dtype.value_or(a.dtype()));
  MemoryOrder memory = order_like("full_like", a, like);
  Array out = new_array_like(memory, a, like);
  fill_elements("full", out, value);
  return memory.restored(out);
}

Array empty_pinned(const Shape& shape, Dtype dtype) {
  return rensa::detail::new_pinned_array(shape, dtype);
}

namespace {

// An integer as it is: int64 and uint64 fit into it, and what is between two of them.
__int128 whole(Scalar value) {
  std::int64_t bits = value.integer();
  return value.kind() == 'u' ? __int128{static_cast<std::uint64_t>(bits)} : __int128{bits};
}

bool all_integral(Scalar start, Scalar stop, Scalar step) {
  return start.is_integral() && stop.is_integral() && step.is_integral();
}

std::int64_t arange_length(Scalar start, Scalar stop, Scalar step) {
  if (start.kind() == 'c' || stop.kind() == 'c' || step.kind() == 'c') {
    throw DtypeError("arange: complex numbers have no order");
  }
  if (step.real() == 0) throw ValueError("arange: the step cannot be 0");
  auto refuse = [&] {
    throw ValueError(fmt::format("arange: [{}, {}) by {} has more numbers than can be counted",
                                 start.real(), stop.real(), step.real()));
  };
  if (!all_integral(start, stop, step)) {
    double length = std::ceil((stop.real() - start.real()) / step.real());
    if (!(length < 9e18)) refuse();
    return length > 0 ? static_cast<std::int64_t>(length) : 0;
  }
  __int128 distance = whole(stop) - whole(start), by = whole(step);
  if (distance == 0 || (distance < 0) != (by < 0)) return 0;
  __int128 count = (distance - (by < 0 ? -1 : 1)) / by + 1;
  if (count > std::numeric_limits<std::int64_t>::max()) refuse();
  return static_cast<std::int64_t>(count);
}

// What NumPy gives a range without a dtype.
Dtype arange_dtype(Scalar start, Scalar stop, Scalar step) {
  if (!all_integral(start, stop, step)) return float64;
  constexpr __int128 kMost = std::numeric_limits<std::int64_t>::max();
  return whole(start) > kMost || whole(stop) > kMost ? uint64 : int64;
}

}  // namespace

Array arange(Scalar start, Scalar stop, Scalar step, Dtype dtype, Placement device) {
  Array out = new_array({arange_length(start, stop, step)}, dtype, device.device());
  if (out.size() == 0) return out;
  operations::Arange op;
  op.start = start;
  op.step = step;
  op.out = out.operand();
  launch(op);
  return out;
}

Array arange(Scalar start, Scalar stop, Scalar step, const CreationOptions& o) {
  return o.dtype ? arange(start, stop, step, *o.dtype, o.device)
                 : arange(start, stop, step, o.device);
}

Array arange(Scalar stop, const CreationOptions& options) { return arange(0, stop, 1, options); }

Array arange(Scalar start, Scalar stop, Scalar step, Placement device) {
  return arange(start, stop, step, arange_dtype(start, stop, step), device);
}

Array arange(Scalar stop, Dtype dtype, Placement device) {
  return arange(0, stop, 1, dtype, device);
}

Array arange(Scalar stop, Placement device) { return arange(0, stop, 1, device); }

namespace {

// Up to here samples are made on the host, as NumPy makes them: one copy instead of four launches.
constexpr std::int64_t kHostSamples = 1 << 16;

void check_samples(const char* operation, std::int64_t num) {
  if (num >= 0) return;
  throw ValueError(fmt::format("{}: {} samples are fewer than none", operation, num));
}

double step_of(double start, double stop, std::int64_t num, bool endpoint) {
  std::int64_t steps = endpoint ? num - 1 : num;
  return steps > 0 ? (stop - start) / static_cast<double>(steps) : std::nan("");
}

std::vector<double> host_samples(double start, double stop, std::int64_t num, bool endpoint) {
  std::vector<double> values(static_cast<std::size_t>(num));
  double step = step_of(start, stop, num, endpoint);
  auto steps = static_cast<double>(endpoint ? num - 1 : num);
  for (std::int64_t i = 0; i < num; ++i) {
    auto at = static_cast<double>(i);
    // A step too small for a number goes the long way round.
    double way = steps < 1 ? 0 : step == 0 ? at / steps * (stop - start) : at * step;
    values[static_cast<std::size_t>(i)] = way + start;
  }
  if (endpoint && num > 1) values.back() = stop;
  return values;
}

// `values` as `dtype`, rounded down where that has no fractions.
Array floored(const Array& values, Dtype dtype) {
  if (values.dtype() == dtype) return values;
  bool integral = dtype_kind(dtype) == 'i' || dtype_kind(dtype) == 'u';
  return (integral ? floor(values) : values).astype(dtype, false);
}

}  // namespace

Array linspace(double start, double stop, std::int64_t num, Dtype dtype, Placement device) {
  return linspace(start, stop, num, true, dtype, device);
}

Array linspace(double start, double stop, std::int64_t num, bool endpoint, Dtype dtype,
               Placement device) {
  check_samples("linspace", num);
  if (num <= kHostSamples) {
    std::vector<double> values = host_samples(start, stop, num, endpoint);
    bool integral = dtype_kind(dtype) == 'i' || dtype_kind(dtype) == 'u';
    for (double& value : values) value = integral ? std::floor(value) : value;
    return array(values, device).astype(dtype, false);
  }
  bool whole = dtype_kind(dtype) == 'i' || dtype_kind(dtype) == 'u';
  // A positive number is rounded down on the store.
  bool rounds = whole && std::min(start, stop) < 0;
  Array values = new_array({num}, rounds ? float64 : dtype, device.device());
  operations::Arange op;
  op.start = start;
  op.step = step_of(start, stop, num, endpoint);
  op.out = values.operand();
  launch(op);
  if (endpoint) fill_elements("linspace", rensa::detail::slice_along(values, 0, num - 1, 1), stop);
  return floored(values, dtype);
}

std::pair<Array, double> linspace_retstep(double start, double stop, std::int64_t num,
                                          bool endpoint, Dtype dtype, Placement device) {
  Array values = linspace(start, stop, num, endpoint, dtype, device);
  return {values, step_of(start, stop, num, endpoint)};
}

Array linspace(Scalar start, Scalar stop, std::int64_t num, const LinspaceOptions& o) {
  if (start.kind() != 'c' && stop.kind() != 'c') {
    return linspace(start.real(), stop.real(), num, o.endpoint, o.dtype.value_or(float64),
                    o.device);
  }
  Device device = o.device.device();
  return linspace(full({}, start, complex128, device), full({}, stop, complex128, device), num,
                  {.endpoint = o.endpoint, .dtype = o.dtype});
}

Array linspace(std::complex<double> start, std::complex<double> stop, std::int64_t num) {
  return linspace(Scalar(start), Scalar(stop), num, LinspaceOptions{});
}

Array linspace(const Array& start, const Array& stop, std::int64_t num,
               const LinspaceOptions& options) {
  bool endpoint = options.endpoint;
  if (options.device.given()) {
    throw ValueError("linspace: samples between arrays lie on their device; move the arrays");
  }
  check_samples("linspace", num);
  check_defined("linspace", start);
  check_defined("linspace", stop);
  check_same_device("linspace", start, stop);
  Dtype wide = promote_types(start.dtype(), stop.dtype());
  if (dtype_kind(wide) != 'f' && dtype_kind(wide) != 'c') wide = float64;
  Array first = start.astype(wide, false), last = stop.astype(wide, false);
  Array distance = last - first;
  Shape column = Shape::filled(distance.ndim() + 1, 1);
  column[0] = num;
  std::int64_t steps = endpoint ? num - 1 : num;
  Array values = arange(0, num, 1, wide, start.device()).reshape(column);
  values = steps > 0 ? values * (distance / static_cast<double>(steps)) : values * distance;
  values += first;
  if (endpoint && num > 1) values[-1].assign(last);
  return moveaxis(floored(values, options.dtype.value_or(wide)), 0, options.axis);
}

Array logspace(double start, double stop, std::int64_t num, bool endpoint, double base, Dtype dtype,
               Placement device) {
  check_samples("logspace", num);
  if (num > kHostSamples) {
    return power(base, linspace(start, stop, num, endpoint, float64, device)).astype(dtype, false);
  }
  std::vector<double> values = host_samples(start, stop, num, endpoint);
  for (double& value : values) value = std::pow(base, value);
  return array(values, device).astype(dtype, false);
}

Array geomspace(double start, double stop, std::int64_t num, bool endpoint, Dtype dtype,
                Placement device) {
  check_samples("geomspace", num);
  if (start == 0 || stop == 0) {
    throw ValueError("geomspace: a geometric progression cannot include zero");
  }
  if ((start < 0) != (stop < 0)) {
    throw ValueError(
        fmt::format("geomspace: {} and {} differ in sign, which no factor brings from the one to "
                    "the other",
                    start, stop));
  }
  double sign = start < 0 ? -1 : 1;
  Array values = logspace(std::log10(start * sign), std::log10(stop * sign), num, endpoint, 10,
                          float64, device);
  if (num > 0) values[0].fill(start * sign);
  if (num > 1 && endpoint) values[-1].fill(stop * sign);
  return (sign < 0 ? values * sign : values).astype(dtype, false);
}

Array array(const HostValues& values, Placement device) { return values.copy_to(device.device()); }
Array array(const HostValues& values, Dtype dtype, Placement device) {
  return values.copy_to(dtype, device.device());
}

Array asarray(const HostValues& values, Placement device) { return array(values, device); }
Array asarray(const HostValues& values, Dtype dtype, Placement device) {
  return array(values, dtype, device);
}

Array asarray(const Array& a, const AsarrayOptions& options) {
  check_defined("asarray", a);
  Dtype dtype = options.dtype.value_or(a.dtype());
  Device device = options.device.value_or(a.device());
  bool fits = dtype == a.dtype() && device == a.device();
  if (fits) return options.copy.value_or(false) ? a.copy() : a;
  if (!options.copy.value_or(true)) {
    throw ValueError(fmt::format("asarray: {} cannot be {} on {} without a copy",
                                 a.view().describe(), dtype_name(dtype), device.str()));
  }
  // What is narrower travels.
  bool widens = rensa::itemsize(dtype) > rensa::itemsize(a.dtype());
  return widens ? a.to(device).astype(dtype, false) : a.astype(dtype, false).to(device);
}

Array ascontiguousarray(const Array& a) {
  check_defined("ascontiguousarray", a);
  return a.ndim() == 0 ? a.reshape({1}) : a.ascontiguous();
}

Array ascontiguousarray(const Array& a, Dtype dtype) {
  check_defined("ascontiguousarray", a);
  return ascontiguousarray(a.astype(dtype, false));
}

Array asarray_chkfinite(const Array& a, std::optional<Dtype> dtype, Order order) {
  check_defined("asarray_chkfinite", a);
  Array result = a.astype(dtype.value_or(a.dtype()), {.copy = false, .order = order});
  char kind = dtype_kind(result.dtype());
  if ((kind == 'f' || kind == 'c') && !all(isfinite(result)).item<bool>()) {
    throw ValueError(
        fmt::format("asarray_chkfinite: {} holds infinities or NaN", result.view().describe()));
  }
  return result;
}

void detail::check_iter_count(std::int64_t got, std::int64_t count) {
  if (count < 0 || got == count) return;
  throw ValueError(fmt::format("fromiter: the range ended after {} of {} numbers", got, count));
}

}  // namespace xp

}  // namespace rensa

// Statistics made of reductions and elementwise rows.
#include "rensa/array/statistics.h"

#include <fmt/format.h>

#include <limits>

#include "rensa/array/internal.h"
#include "rensa/array/math.h"
#include "rensa/array/rows.h"
#include "rensa/core/error.h"
#include "rensa/device/tracer.h"

namespace rensa::detail {

Array weights_along(const char* operation, const Array& a, const Array& weights, unsigned axes) {
  check_defined(operation, weights);
  if (weights.shape() == a.shape()) return weights;
  Shape reduced, shape = a.shape();
  for (int i = 0; i < a.ndim(); ++i) {
    if (axes >> i & 1) reduced.push_back(shape[i]);
    else shape[i] = 1;
  }
  bool all = reduced.ndim() == a.ndim();
  if (weights.shape() == reduced && !all) return weights.reshape(shape);
  throw ShapeError(
      fmt::format("{}: the weights {} have neither the shape of {} nor that of its reduced axes",
                  operation, weights.view().describe(), a.view().describe()));
}

}  // namespace rensa::detail

namespace rensa::xp {

namespace {

bool is_floating(const Array& a) {
  char kind = dtype_kind(a.dtype());
  return kind == 'f' || kind == 'c';
}

Dtype real_of(Dtype d) { return d == complex64 ? float32 : d == complex128 ? float64 : d; }

// What sums of a result of `d` are carried in.
Dtype carried_in(Dtype d) { return itemsize(d) == 2 ? float32 : d; }

// The number of elements that each result is made of.
std::int64_t count_along(const char* name, const Array& a, Axes axis) {
  unsigned axes = axis.mask(name, a.ndim());
  Shape along;
  for (int i = 0; i < a.ndim(); ++i) {
    if (axes >> i & 1) along.push_back(a.shape()[i]);
  }
  return along.total();
}

Shape without_axes(const Shape& shape, unsigned axes) {
  Shape result;
  for (int i = 0; i < shape.ndim(); ++i) {
    if (!(axes >> i & 1)) result.push_back(shape[i]);
  }
  return result;
}

// The sum of |a - mean|^2 in one pass, with the reduced axes kept.
Array deviations(const Array& a, unsigned axes, Dtype dtype) {
  auto sum = [axes, dtype](const Array& x) {
    return rensa::detail::reduce_axes(Reduction::deviations, x, axes, real_of(dtype));
  };
  if (dtype_kind(a.dtype()) != 'c') return sum(a);
  Array total = sum(real(a));
  total += sum(imag(a));
  return total;
}

// The sum of |a|^2 with the reduced axes kept.
Array squares(const Array& a, unsigned axes) {
  auto sum = [axes](const Array& x) {
    return rensa::detail::reduce_axes(Reduction::sum_of_squares, x, axes);
  };
  if (dtype_kind(a.dtype()) != 'c') return sum(a);
  Array total = sum(real(a));
  total += sum(imag(a));
  return total;
}

// `result` in `dtype`, written into `out` where there is one.
Array finished(const char* name, const Array& result, Dtype dtype, const ArrayOption& out) {
  if (!out) return result.astype(dtype, false);
  rensa::detail::check_defined(name, *out);
  rensa::detail::check_same_kind(name, dtype, *out);
  if ((*out).shape() != result.shape()) {
    throw ShapeError(fmt::format("{}: the result of shape {} does not fit into {}", name,
                                 result.shape().str(), (*out).view().describe()));
  }
  return rensa::detail::elementwise(name, Ufunc::copy, {result}, {.out = *out});
}

// var, or its root. With `few_is_nan` results of not more than ddof elements are NaN.
Array variance(const char* name, const Array& a, const VarianceOptions& options, bool root,
               bool few_is_nan) {
  rensa::detail::check_defined(name, a);
  unsigned axes = options.axis.mask(name, a.ndim());
  Dtype given = options.dtype.value_or(is_floating(a) ? a.dtype() : float64);
  if (dtype_kind(given) != 'f' && dtype_kind(given) != 'c') {
    throw DtypeError(fmt::format("{}: is not computed in {}", name, dtype_name(given)));
  }
  Dtype carried = carried_in(given);
  bool one_pass = !options.where && !current_tracer &&
                  (dtype_kind(a.dtype()) == 'c') == (dtype_kind(given) == 'c');
  Array difference, result;
  if (!one_pass) {
    Array mean = xp::mean(
        a, {.axis = options.axis, .keepdims = true, .dtype = carried, .where = options.where});
    difference = subtract(a, mean, {.dtype = carried});
  }
  if (options.where) {
    const Array& mask = *options.where;
    difference = xp::where(mask, difference, 0);
    Array counts = sum(mask.broadcast_to(a.shape()), options.axis, true).astype(real_of(carried));
    result = squares(difference, axes) / maximum(counts - options.ddof, 0);
    if (few_is_nan) {
      result = xp::where(counts <= options.ddof, std::numeric_limits<double>::quiet_NaN(), result);
    }
  } else {
    auto count = static_cast<double>(count_along(name, a, options.axis));
    result = one_pass ? deviations(a, axes, carried) : squares(difference, axes);
    result = result / std::max(count - options.ddof, 0.0);
  }
  if (root) result = sqrt(result);
  if (!options.keepdims) result = result.reshape(without_axes(result.shape(), axes));
  return finished(name, result, real_of(given), options.out);
}

Array nan_variance(const char* name, const Array& a, Axes axis, double ddof, bool keepdims,
                   bool root) {
  rensa::detail::check_defined(name, a);
  VarianceOptions options = {.axis = axis, .ddof = ddof, .keepdims = keepdims};
  Array numbers;
  if (is_floating(a)) {
    numbers = logical_not(isnan(a));
    options.where = numbers;
  }
  return variance(name, a, options, root, true);
}

}  // namespace

Array var(const Array& a, Axes axis, double ddof, bool keepdims) {
  return variance("var", a, {.axis = axis, .ddof = ddof, .keepdims = keepdims}, false, false);
}
Array var(const Array& a, const VarianceOptions& options) {
  return variance("var", a, options, false, false);
}
Array std(const Array& a, Axes axis, double ddof, bool keepdims) {
  return variance("std", a, {.axis = axis, .ddof = ddof, .keepdims = keepdims}, true, false);
}
Array std(const Array& a, const VarianceOptions& options) {
  return variance("std", a, options, true, false);
}

Array nanmean(const Array& a, Axes axis, bool keepdims) {
  rensa::detail::check_defined("nanmean", a);
  if (!is_floating(a)) return mean(a, axis, keepdims);
  if (!current_tracer) {
    unsigned axes = axis.mask("nanmean", a.ndim());
    Array result = rensa::detail::reduce_axes(Reduction::nanmean, a, axes);
    return keepdims ? result : result.reshape(without_axes(result.shape(), axes));
  }
  Dtype carried = carried_in(a.dtype());
  Array total = nansum(a, {.axis = axis, .keepdims = keepdims, .dtype = carried});
  Array missing = sum(isnan(a), axis, keepdims);
  Array counts = (count_along("nanmean", a, axis) - missing).astype(real_of(carried));
  return (total / counts).astype(a.dtype(), false);
}

Array nanvar(const Array& a, Axes axis, double ddof, bool keepdims) {
  return nan_variance("nanvar", a, axis, ddof, keepdims, false);
}
Array nanstd(const Array& a, Axes axis, double ddof, bool keepdims) {
  return nan_variance("nanstd", a, axis, ddof, keepdims, true);
}

namespace {

// `position` of `a` along `axis`, NaN counting as `loser`.
template <class F>
Array nan_position(const Array& a, int axis, bool keepdims, double loser, F position) {
  if (dtype_kind(a.dtype()) != 'f') return position(a, axis, keepdims);
  Array nan = isnan(a);
  Array found = position(where(nan, loser, a), axis, keepdims);
  return where(all(nan, axis, keepdims), -1, found);
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

Array nanargmax(const Array& a, int axis, bool keepdims) {
  rensa::detail::check_defined("nanargmax", a);
  return nan_position(a, axis, keepdims, -kInfinity,
                      [](const Array& x, int along, bool keep) { return argmax(x, along, keep); });
}
Array nanargmin(const Array& a, int axis, bool keepdims) {
  rensa::detail::check_defined("nanargmin", a);
  return nan_position(a, axis, keepdims, kInfinity,
                      [](const Array& x, int along, bool keep) { return argmin(x, along, keep); });
}
Array nanargmax(const Array& a) { return nanargmax(a.reshape({a.size()}), 0); }
Array nanargmin(const Array& a) { return nanargmin(a.reshape({a.size()}), 0); }

Array ptp(const Array& a, Axes axis, bool keepdims) {
  Array result = max(a, axis, keepdims);
  result -= min(a, axis, keepdims);
  return result;
}

Array average(const Array& a, const AverageOptions& options) {
  rensa::detail::check_defined("average", a);
  Axes axis = options.axis;
  if (!options.weights) {
    Array result = mean(a, axis, options.keepdims);
    auto count = static_cast<double>(count_along("average", a, axis));
    if (options.returned) *options.returned = full_like(result, count);
    return result;
  }
  unsigned axes = axis.mask("average", a.ndim());
  Array weights = rensa::detail::weights_along("average", a, *options.weights, axes);
  Dtype dtype = promote_types(a.dtype(), weights.dtype());
  if (dtype_kind(a.dtype()) != 'f' && dtype_kind(a.dtype()) != 'c') {
    dtype = promote_types(dtype, float64);
  }
  Array totals = sum(weights.broadcast_to(a.shape()),
                     {.axis = axis, .keepdims = options.keepdims, .dtype = dtype});
  Array products = multiply(a, weights, {.dtype = dtype});
  Array result = sum(products, axis, options.keepdims) / totals;
  if (options.returned) *options.returned = totals;
  return result;
}

Array average(const Array& a, Axes axis, const Array& weights) {
  return average(a, {.axis = axis, .weights = weights});
}

}  // namespace rensa::xp

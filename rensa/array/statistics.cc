// Statistics made of reductions and elementwise rows.
#include "rensa/array/statistics.h"

#include <fmt/format.h>

#include <limits>

#include "rensa/array/along_axis.h"
#include "rensa/array/internal.h"
#include "rensa/array/math.h"
#include "rensa/core/error.h"
#include "rensa/device/tracer.h"

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
    return rensa::detail::reduce_axes(reduction::deviations, x, axes, real_of(dtype));
  };
  if (dtype_kind(a.dtype()) != 'c') return sum(a);
  Array total = sum(real(a));
  total += sum(imag(a));
  return total;
}

// The sum of |a|^2 with the reduced axes kept.
Array squares(const Array& a, unsigned axes) {
  auto sum = [axes](const Array& x) {
    return rensa::detail::reduce_axes(reduction::sum_of_squares, x, axes);
  };
  if (dtype_kind(a.dtype()) != 'c') return sum(a);
  Array total = sum(real(a));
  total += sum(imag(a));
  return total;
}

// var, or its root. With `few_is_nan` results of not more than ddof elements are NaN.
Array variance(const char* name, const Array& a, const VarianceOptions& options, bool root,
               bool few_is_nan) {
  rensa::detail::check_defined(name, a);
  if (options.correction && options.ddof != 0) {
    throw ValueError(fmt::format("{}: ddof and correction are one thing; give one of them", name));
  }
  double ddof = options.correction.value_or(options.ddof);
  unsigned axes = options.axis.mask(name, a.ndim());
  Dtype given = options.dtype.value_or(is_floating(a) ? a.dtype() : float64);
  if (dtype_kind(given) != 'f' && dtype_kind(given) != 'c') {
    throw DtypeError(fmt::format("{}: is not computed in {}", name, dtype_name(given)));
  }
  Dtype carried = carried_in(given);
  bool one_pass = !options.where && !options.mean && !current_tracer &&
                  (dtype_kind(a.dtype()) == 'c') == (dtype_kind(given) == 'c');
  Array difference, result;
  if (one_pass && ddof == 0 && dtype_kind(given) == 'f' && !options.out && a.size() > 0) {
    Reduction found = root ? reduction::standard_deviation : reduction::variance;
    result = rensa::detail::reduce_axes(found, a, axes, given);
    return options.keepdims ? result : result.reshape(without_axes(result.shape(), axes));
  }
  if (!one_pass) {
    Array mean = options.mean ? *options.mean
                              : xp::mean(a, {.axis = options.axis,
                                             .keepdims = true,
                                             .dtype = carried,
                                             .where = options.where});
    difference = subtract(a, mean, {.dtype = carried});
  }
  if (options.where) {
    const Array& mask = *options.where;
    difference = xp::where(mask, difference, 0);
    Array counts = sum(mask.broadcast_to(a.shape()), options.axis, true).astype(real_of(carried));
    result = squares(difference, axes) / maximum(counts - ddof, 0);
    if (few_is_nan) {
      result = xp::where(counts <= ddof, std::numeric_limits<double>::quiet_NaN(), result);
    }
  } else {
    auto count = static_cast<double>(count_along(name, a, options.axis));
    result = one_pass ? deviations(a, axes, carried) : squares(difference, axes);
    result = result / std::max(count - ddof, 0.0);
  }
  if (root) result = sqrt(result);
  if (!options.keepdims) result = result.reshape(without_axes(result.shape(), axes));
  if (!options.out) result = result.astype(real_of(given), false);
  return rensa::detail::deliver(name, result, options.out);
}

Array nan_variance(const char* name, const Array& a, VarianceOptions options, bool root) {
  rensa::detail::check_defined(name, a);
  Array numbers;
  if (is_floating(a)) {
    numbers = logical_not(isnan(a));
    if (options.where) {
      rensa::detail::check_mask(name, *options.where, a);
      numbers = logical_and(numbers, *options.where);
    }
    options.where = numbers;
  }
  return variance(name, a, options, root, true);
}

}  // namespace

Array var(const Array& a, const VarianceOptions& options) {
  return variance("var", a, options, false, false);
}
Array std(const Array& a, const VarianceOptions& options) {
  return variance("std", a, options, true, false);
}
Array nanvar(const Array& a, const VarianceOptions& options) {
  return nan_variance("nanvar", a, options, false);
}
Array nanstd(const Array& a, const VarianceOptions& options) {
  return nan_variance("nanstd", a, options, true);
}

namespace {

// The mean of what is neither NaN nor masked.
Array mean_of_numbers(const Array& a, const ReduceOptions& options) {
  Dtype dtype = options.dtype.value_or(a.dtype()), carried = carried_in(dtype);
  Array counted = logical_not(isnan(a));
  if (options.where) {
    rensa::detail::check_mask("nanmean", *options.where, a);
    counted = logical_and(counted, *options.where);
  }
  Array total = sum(where(counted, a, 0),
                    {.axis = options.axis, .keepdims = options.keepdims, .dtype = carried});
  Array counts = sum(counted, options.axis, options.keepdims).astype(real_of(carried));
  return (total / counts).astype(dtype, false);
}

}  // namespace

Array nanmean(const Array& a, const ReduceOptions& options) {
  rensa::detail::check_defined("nanmean", a);
  if (options.initial) throw ValueError("nanmean: takes no `initial`");
  if (!is_floating(a)) return mean(a, options);
  if (current_tracer || options.dtype || options.where) {
    return rensa::detail::deliver("nanmean", mean_of_numbers(a, options), options.out);
  }
  unsigned axes = options.axis.mask("nanmean", a.ndim());
  Array result = rensa::detail::reduce_axes(reduction::nanmean, a, axes);
  if (!options.keepdims) result = result.reshape(without_axes(result.shape(), axes));
  return rensa::detail::deliver("nanmean", result, options.out);
}

namespace {

// `position` of `a`, NaN counting as `loser`.
template <class F>
Array nan_position(const char* name, const Array& a, const AxisOptions& options, double loser,
                   F position) {
  rensa::detail::check_defined(name, a);
  if (dtype_kind(a.dtype()) != 'f') return position(a, options);
  Array nan = isnan(a);
  Array found =
      position(where(nan, loser, a), {.axis = options.axis, .keepdims = options.keepdims});
  found = where(all(nan, options.axis, options.keepdims), -1, found);
  return rensa::detail::deliver(name, found, options.out);
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

Array nanargmax(const Array& a, const AxisOptions& options) {
  return nan_position("nanargmax", a, options, -kInfinity,
                      [](const Array& x, const AxisOptions& o) { return argmax(x, o); });
}
Array nanargmin(const Array& a, const AxisOptions& options) {
  return nan_position("nanargmin", a, options, kInfinity,
                      [](const Array& x, const AxisOptions& o) { return argmin(x, o); });
}

Array ptp(const Array& a, const AxisOptions& options) {
  Array result = max(a, options.axis, options.keepdims);
  result -= min(a, options.axis, options.keepdims);
  return rensa::detail::deliver("ptp", result, options.out);
}

std::pair<Array, Array> average_returned(const Array& a, const AverageOptions& options) {
  rensa::detail::check_defined("average", a);
  const Axes& axis = options.axis;
  if (!options.weights) {
    Array result = mean(a, axis, options.keepdims);
    return {result, full_like(result, static_cast<double>(count_along("average", a, axis)))};
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
  return {sum(products, axis, options.keepdims) / totals, totals};
}

Array average(const Array& a, const AverageOptions& options) {
  rensa::detail::check_defined("average", a);
  if (!options.weights) return mean(a, options.axis, options.keepdims);
  return average_returned(a, options).first;
}

Array average(const Array& a, Axes axis, const Array& weights) {
  return average(a, {.axis = axis, .weights = weights});
}

}  // namespace rensa::xp

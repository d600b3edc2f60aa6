// Medians and quantiles: elements of sorted rows, and between them.
#include "rensa/array/order_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>

#include "rensa/array/along_axis.h"
#include "rensa/array/internal.h"
#include "rensa/array/scan.h"
#include "rensa/array/ufuncs/arithmetic.h"
#include "rensa/array/ufuncs/rounding.h"
#include "rensa/core/error.h"

namespace rensa {

namespace {

bool has_nan(Dtype dtype) { return dtype_kind(dtype) == 'f' || dtype_kind(dtype) == 'c'; }

// What a statistic is made of: a row for each of its results, sorted.
struct SortedRows {
  Array rows;
  Shape shape;  // of the results

  // The shares of the weights up to each element; undefined where there are no weights.
  Array shares;

  // `weights` of NaN count nothing where `ignore_nan`.
  SortedRows(const char* operation, const Array& a, Axes axis, bool keepdims,
             const ArrayOption& weights = {}, bool ignore_nan = false) {
    detail::check_defined(operation, a);
    unsigned reduced = axis.mask(operation, a.ndim());
    for (int i = 0; i < a.ndim(); ++i) {
      bool kept = !(reduced >> i & 1);
      if (kept || keepdims) shape.push_back(kept ? a.shape()[i] : 1);
    }
    Array unsorted = rows_of(a, reduced);
    if (!weights) {
      rows = detail::sorted_rows(operation, unsorted);
      return;
    }
    Array given = detail::weights_along(operation, a, *weights, reduced).broadcast_to(a.shape());
    Array order = detail::order_of_rows(operation, unsorted);
    rows = detail::take_places(unsorted, order);
    Array sorted = detail::take_places(rows_of(given.astype(float64), reduced), order);
    if (ignore_nan) sorted = xp::where(xp::equal(rows, rows), sorted, 0.);
    shares = xp::cumsum(sorted, 1);
    if (n() > 0) shares = shares / shares[{Slice(), Slice(n() - 1, n())}];
  }

  // The axes in `reduced` as the rows of a matrix.
  static Array rows_of(const Array& a, unsigned reduced) {
    Shape axes, gone, kept_extents, extents;
    for (int i = 0; i < a.ndim(); ++i) {
      bool kept = !(reduced >> i & 1);
      (kept ? axes : gone).push_back(i);
      (kept ? kept_extents : extents).push_back(a.shape()[i]);
    }
    for (std::int64_t i : gone) axes.push_back(i);
    return a.transpose(axes).ascontiguous().reshape({kept_extents.total(), extents.total()});
  }

  std::int64_t count() const { return rows.shape()[0]; }
  std::int64_t n() const { return rows.shape()[1]; }
  // Element `place` of every row.
  Array at(std::int64_t place) const { return rows[{Slice(), place}]; }
  // Element places[r] of row r.
  Array at(const Array& places) const {
    return detail::take_places(rows, places.astype(int64, false).reshape({count(), 1}))
        .reshape({count()});
  }
  // How many elements of each row are not NaN: those in front.
  Array numbers() const { return xp::sum(xp::equal(rows, rows), 1); }
  // `result` where no element of the row is NaN, which would have come last.
  Array or_nan(const Array& result) const {
    if (!has_nan(rows.dtype())) return result;
    Array last = at(n() - 1);
    return xp::where(xp::equal(last, last), result, last.astype(result.dtype(), false));
  }
};

Dtype mean_dtype(Dtype dtype) { return has_nan(dtype) ? dtype : float64; }

Array nan_results(const SortedRows& sorted, Dtype dtype) {
  double nan = std::nan("");
  Scalar value = dtype_kind(dtype) == 'c' ? Scalar(std::complex<double>(nan, nan)) : Scalar(nan);
  return xp::full({sorted.count()}, value, dtype, sorted.rows.device());
}

// --- quantiles ---

enum class Method {
  linear,
  lower,
  higher,
  midpoint,
  nearest,
  continuous,
  inverted_cdf,
  averaged_inverted_cdf,
  closest_observation
};

struct MethodInfo {
  Method method;
  double alpha = 1, beta = 1;  // of Hyndman and Fan's continuous ones
};

MethodInfo method_of(const char* operation, std::string_view name) {
  static const std::pair<std::string_view, MethodInfo> methods[] = {
      {"linear", {Method::linear}},
      {"lower", {Method::lower}},
      {"higher", {Method::higher}},
      {"midpoint", {Method::midpoint}},
      {"nearest", {Method::nearest}},
      {"inverted_cdf", {Method::inverted_cdf}},
      {"averaged_inverted_cdf", {Method::averaged_inverted_cdf}},
      {"closest_observation", {Method::closest_observation}},
      {"interpolated_inverted_cdf", {Method::continuous, 0, 1}},
      {"hazen", {Method::continuous, 0.5, 0.5}},
      {"weibull", {Method::continuous, 0, 0}},
      {"median_unbiased", {Method::continuous, 1 / 3., 1 / 3.}},
      {"normal_unbiased", {Method::continuous, 3 / 8., 3 / 8.}},
  };
  for (const auto& [known, info] : methods) {
    if (known == name) return info;
  }
  throw ValueError(fmt::format(
      "{}: the method '{}' is not one of linear, lower, higher, midpoint, nearest, inverted_cdf, "
      "averaged_inverted_cdf, closest_observation, interpolated_inverted_cdf, hazen, weibull, "
      "median_unbiased, normal_unbiased",
      operation, name));
}

double floor_of(double x) { return std::floor(x); }
double ceil_of(double x) { return std::ceil(x); }
double rint_of(double x) { return std::rint(x); }
double ones_where(bool x) { return x ? 1 : 0; }
Array floor_of(const Array& x) { return xp::floor(x); }
Array ceil_of(const Array& x) { return xp::ceil(x); }
Array rint_of(const Array& x) { return xp::rint(x); }
Array ones_where(const Array& x) { return x.astype(float64); }

// Where among n sorted elements (a double, or an array of them) the share q lies.
template <class N> N virtual_place(const MethodInfo& info, const N& n, double q) {
  switch (info.method) {
    case Method::lower: return floor_of((n - 1.) * q);
    case Method::higher: return ceil_of((n - 1.) * q);
    case Method::nearest: return rint_of((n - 1.) * q);
    case Method::midpoint: return (floor_of((n - 1.) * q) + ceil_of((n - 1.) * q)) * 0.5;
    case Method::inverted_cdf: {  // the first element that the share is not beyond
      N place = n * q - 1., before = floor_of(place);
      return before + 1. - ones_where(place == before);
    }
    case Method::closest_observation: {  // of two that are as near the even one, counted from 1
      N place = n * q - 1.5, before = floor_of(place), odd = before - floor_of(before * 0.5) * 2.;
      return before + 1. - ones_where(place == before) * odd;
    }
    case Method::averaged_inverted_cdf: return n * q - 1.;
    case Method::continuous: return n * q + (info.alpha + q * (1 - info.alpha - info.beta)) - 1.;
    default: return (n - 1.) * q;
  }
}

bool is_between(Method method) {
  return method == Method::linear || method == Method::midpoint || method == Method::continuous ||
         method == Method::averaged_inverted_cdf;
}

// How far behind the element before it the place lies, as `info` counts that.
template <class N> N share_of(const MethodInfo& info, const N& distance) {
  if (info.method != Method::averaged_inverted_cdf) return distance;
  return 1. - ones_where(distance == 0.) * 0.5;
}

// b - a as `dtype`. NumPy rounds it to the elements' dtype; where that is an integer one it wraps
// around, here it does not.
Array difference(const Array& a, const Array& b, Dtype dtype) {
  if (has_nan(a.dtype())) return (b - a).astype(dtype);
  return b.astype(dtype) - a.astype(dtype);
}

Array quantile_of(const SortedRows& sorted, const MethodInfo& info, double q, Dtype dtype) {
  auto last = static_cast<double>(sorted.n() - 1);
  double place = virtual_place(info, last + 1, q);
  double before = std::clamp(std::floor(place), 0., last);
  Array a = sorted.at(static_cast<std::int64_t>(before));
  if (!is_between(info.method)) return sorted.or_nan(a.copy());
  double after = place < 0 ? 0 : std::min(before + 1, last);
  double share = share_of(info, std::clamp(place - before, 0., 1.));
  Array b = sorted.at(static_cast<std::int64_t>(after)), step = difference(a, b, dtype);
  a = a.astype(dtype);
  b = b.astype(dtype);
  // Near b from b, so that a share of 1 gives b.
  return sorted.or_nan(share >= 0.5 ? b - step * (1 - share) : a + step * share);
}

Array nanquantile_of(const SortedRows& sorted, const MethodInfo& info, double q, Dtype dtype) {
  Array n = sorted.numbers().astype(float64);
  // A row of NaN alone gives its first.
  Array last = xp::maximum(n - 1., 0.), place = virtual_place(info, n, q);
  Array before = xp::minimum(xp::maximum(xp::floor(place), 0.), last);
  Array a = sorted.at(before);
  if (!is_between(info.method)) return a;
  Array after = xp::where(xp::less(place, 0.), before, xp::minimum(before + 1., last));
  Array share = share_of(info, xp::minimum(xp::maximum(place - before, 0.), 1.));
  Array b = sorted.at(after), step = difference(a, b, dtype);
  a = a.astype(dtype);
  b = b.astype(dtype);
  Array far = (1. - share).astype(dtype), near = share.astype(dtype);
  return xp::where(xp::greater_equal(share, 0.5), b - step * far, a + step * near);
}

// The first element up to which the weights come to the share q.
Array weighted_quantile_of(const SortedRows& sorted, double q, bool ignore_nan) {
  const Array& shares = sorted.shares;
  Array before = xp::sum(q == 0 ? xp::less_equal(shares, 0.) : xp::less(shares, q), 1);
  Array result = sorted.at(xp::minimum(before, sorted.n() - 1));
  return ignore_nan ? result : sorted.or_nan(result);
}

struct QuantileCall {
  const char* operation;
  bool ignore_nan, percent;
  const xp::QuantileOptions& options;
};

// The results for each q, along a first axis.
std::vector<Array> quantiles(const QuantileCall& call, const Array& a, const std::vector<double>& q,
                             bool several) {
  MethodInfo info = method_of(call.operation, call.options.method);
  detail::check_defined(call.operation, a);
  char kind = dtype_kind(a.dtype());
  if (kind == 'c' || (kind == 'b' && is_between(info.method))) {
    throw DtypeError(fmt::format("{}: {} is not taken: there is nothing between its elements",
                                 call.operation, a.view().describe()));
  }
  for (double share : q) {
    if (share >= 0 && share <= (call.percent ? 100 : 1)) continue;
    throw ValueError(fmt::format("{}: q has to lie in [0, {}], {} does not", call.operation,
                                 call.percent ? 100 : 1, share));
  }
  if (call.options.weights && info.method != Method::inverted_cdf) {
    throw ValueError(fmt::format("{}: weights are for the method inverted_cdf, not for {}",
                                 call.operation, call.options.method));
  }
  bool ignore_nan = call.ignore_nan && kind == 'f';
  SortedRows sorted(call.operation, a, call.options.axis, call.options.keepdims,
                    call.options.weights, ignore_nan);
  if (sorted.n() == 0 && !call.ignore_nan && sorted.count() > 0) {
    throw ValueError(fmt::format("{}: {} has no elements to take a quantile of", call.operation,
                                 a.view().describe()));
  }
  Dtype dtype = mean_dtype(a.dtype());
  if (several) dtype = promote_types(dtype, float64);
  std::vector<Array> results;
  // Of nothing nanquantile gives what nanmean does.
  Dtype of_nothing = call.ignore_nan           ? mean_dtype(a.dtype())
                     : is_between(info.method) ? dtype
                                               : a.dtype();
  for (double share : q) {
    double of_one = call.percent ? share / 100 : share;
    Array result = sorted.count() == 0    ? detail::new_array({0}, of_nothing, a.device())
                   : sorted.n() == 0      ? nan_results(sorted, of_nothing)
                   : call.options.weights ? weighted_quantile_of(sorted, of_one, ignore_nan)
                   : ignore_nan           ? nanquantile_of(sorted, info, of_one, dtype)
                                          : quantile_of(sorted, info, of_one, dtype);
    results.push_back(result.reshape(sorted.shape));
  }
  return results;
}

Array quantiles_of(const QuantileCall& call, const Array& a, const xp::Shares& q) {
  Array result;
  if (q.values().empty()) {
    throw ValueError(fmt::format("{}: there is no q to take a quantile for", call.operation));
  }
  std::vector<Array> results = quantiles(call, a, q.values(), !q.single());
  if (q.single()) {
    result = results[0];
  } else {
    result = xp::stack(results);
    Shape shape = q.shape();
    for (int i = 1; i < result.ndim(); ++i) shape.push_back(result.shape()[i]);
    result = result.reshape(shape);
  }
  return detail::deliver(call.operation, result, call.options.out);
}

// --- medians ---

Array median_of(const Array& a, const Axes& axis, bool keepdims) {
  SortedRows sorted("median", a, axis, keepdims);
  std::int64_t n = sorted.n();
  if (n == 0) return nan_results(sorted, mean_dtype(a.dtype())).reshape(sorted.shape);
  Array middle = sorted.rows[{Slice(), Slice((n - 1) / 2, n / 2 + 1)}];
  return sorted.or_nan(xp::mean(middle, 1)).reshape(sorted.shape);
}

Array nanmedian_of(const Array& a, const Axes& axis, bool keepdims) {
  detail::check_defined("nanmedian", a);
  if (!has_nan(a.dtype())) return median_of(a, axis, keepdims);
  SortedRows sorted("nanmedian", a, axis, keepdims);
  if (sorted.n() == 0) return nan_results(sorted, a.dtype()).reshape(sorted.shape);
  Array n = sorted.numbers();
  Array low = xp::maximum(xp::floor_divide(n - 1, 2), 0);
  Array high = xp::maximum(low, xp::minimum(xp::floor_divide(n, 2), sorted.n() - 1));
  Array even = xp::equal(xp::remainder(n, 2), 0) & xp::greater(n, 0);
  Array a_low = sorted.at(low);
  Array pair = xp::stack(std::vector<Array>{a_low, sorted.at(high)});
  return xp::where(even, xp::mean(pair, 0), a_low).reshape(sorted.shape);
}

}  // namespace

namespace xp {

Shares::Shares(const Array& q)
    : values_(q.to_vector<double>()), shape_(q.shape()), single_(q.ndim() == 0) {}

Array median(const Array& a, const AxisOptions& options) {
  return rensa::detail::deliver("median", median_of(a, options.axis, options.keepdims),
                                options.out);
}

Array nanmedian(const Array& a, const AxisOptions& options) {
  return rensa::detail::deliver("nanmedian", nanmedian_of(a, options.axis, options.keepdims),
                                options.out);
}

#define RENSA_QUANTILE(name, ignore_nan, percent)                               \
  Array name(const Array& a, const Shares& q, const QuantileOptions& options) { \
    return quantiles_of({#name, ignore_nan, percent, options}, a, q);           \
  }
RENSA_QUANTILE(quantile, false, false)
RENSA_QUANTILE(percentile, false, true)
RENSA_QUANTILE(nanquantile, true, false)
RENSA_QUANTILE(nanpercentile, true, true)
#undef RENSA_QUANTILE

}  // namespace xp

}  // namespace rensa

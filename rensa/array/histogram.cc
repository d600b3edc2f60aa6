// Counts of values and histograms.
#include "rensa/array/histogram.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rensa/array/along_axis.h"
#include "rensa/array/internal.h"
#include "rensa/core/checked.h"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"
#include "rensa/operations/histogram/histogram.h"

namespace rensa {

using detail::check_defined;
using xp::HistogramRange;
using xp::HistogramResult;

namespace {

bool is_integral(Dtype dtype) { return dtype_kind(dtype) != 'f' && dtype_kind(dtype) != 'c'; }

// The histogram of `in`; weights and edges may be undefined. Counts are int64, sums float64 or
// complex128.
Array count(const char* operation, const Array& in, const Array& edges, const Array& weights,
            std::int64_t bins, bool uniform) {
  Array flat = in.ravel().ascontiguous(), bounds, amounts;
  Dtype dtype = int64;
  operations::Histogram op(operation);
  op.uniform = uniform;
  op.in = flat.operand();
  if (edges.defined()) {
    bounds = edges.astype(float64, false).ascontiguous();
    op.edges = bounds.operand();
  }
  if (weights.defined()) {
    dtype = dtype_kind(weights.dtype()) == 'c' ? complex128 : float64;
    amounts = weights.ravel().astype(dtype, false).ascontiguous();
    op.weights = amounts.operand();
  }
  Array counts = detail::new_array({bins}, dtype, in.device());
  op.counts = counts.operand();
  if (bins > 0) launch(op);
  return counts;
}

void check_weights(const char* operation, const Array& a, const Array& weights) {
  if (!weights.defined()) return;
  check_same_device(operation, a, weights);
  if (weights.shape() == a.shape()) return;
  throw ShapeError(fmt::format("{}: the weights {} have to be of the shape of {}", operation,
                               weights.view().describe(), a.view().describe()));
}

void check_real(const char* operation, const Array& a) {
  check_defined(operation, a);
  if (dtype_kind(a.dtype()) != 'c') return;
  throw DtypeError(
      fmt::format("{}: {} is complex, which has no order", operation, a.view().describe()));
}

// --- edges ---

// The dtype of edges of bins, as NumPy has them.
Dtype edges_dtype(const Array& a) { return is_integral(a.dtype()) ? float64 : a.dtype(); }

// The least and the greatest element, as an array of two.
Array found_range(const char* operation, const Array& a) {
  Device device = a.device();
  Dtype dtype = edges_dtype(a);
  if (a.size() == 0) return xp::array({0., 1.}, device).astype(dtype, false);
  Array range = xp::stack(
      std::vector<Array>{xp::min(a).astype(dtype, false), xp::max(a).astype(dtype, false)});
  if (device.is_cpu() && !xp::all(xp::isfinite(range)).item<bool>()) {
    throw ValueError(
        fmt::format("{}: {} has a range that is not finite", operation, a.view().describe()));
  }
  return range;
}

// `bins` + 1 evenly spaced edges, computed as NumPy does
// (numpy.linspace): in the elements' dtype where the range is theirs, in float64 where it is given.
Array even_edges(const char* operation, const Array& a, std::int64_t bins, HistogramRange range) {
  check_real(operation, a);
  if (bins < 1) throw ValueError(fmt::format("{}: {} bins are fewer than one", operation, bins));
  Array bounds;
  if (range) {
    if (!(range->first <= range->second) || !std::isfinite(range->second - range->first)) {
      throw ValueError(fmt::format("{}: the range ({}, {}) is not one of finite numbers that rise",
                                   operation, range->first, range->second));
    }
    bounds = xp::array({range->first, range->second}, a.device());
  } else {
    bounds = found_range(operation, a);
  }
  Array first = bounds[Slice(0, 1)], last = bounds[Slice(1, 2)];
  Array single = xp::equal(first, last);
  first = xp::where(single, first - 0.5, first);
  last = xp::where(single, last + 0.5, last);
  Array step = (last - first) / static_cast<double>(bins);
  Array edges =
      xp::arange(checked_add(operation, bins, 1), step.dtype(), a.device()) * step + first;
  edges[Slice(bins, bins + 1)] = last;
  return edges.astype(edges_dtype(a), false);
}

void check_edges(const char* operation, const Array& a, const Array& edges) {
  check_real(operation, edges);
  check_same_device(operation, a, edges);
  std::int64_t n = edges.size();
  bool good = edges.ndim() == 1 && n > 0;
  if (good && n > 1 && edges.device().is_cpu()) {
    good = xp::all(xp::less_equal(edges[Slice(0, n - 1)], edges[Slice(1, none)])).item<bool>();
  }
  if (!good) {
    throw ValueError(
        fmt::format("{}: the bins {} are not edges that rise", operation, edges.view().describe()));
  }
}

HistogramResult finish(const char* operation, const Array& a, const Array& edges,
                       const Array& weights, bool uniform, bool density) {
  check_weights(operation, a, weights);
  std::int64_t bins = edges.size() - 1;
  Array counts = count(operation, a, edges, weights, bins, uniform);
  if (weights.defined()) counts = counts.astype(weights.dtype(), false);
  if (density) {
    Array widths = (edges[Slice(1, none)] - edges[Slice(0, bins)]).astype(float64, false);
    counts = counts / widths / xp::sum(counts);
  }
  return {counts, edges};
}

Array given(const ArrayOption& option) { return option ? *option : Array(); }

}  // namespace

namespace xp {

Array bincount(const Array& x, const Array& weights, std::int64_t minlength) {
  check_defined("bincount", x);
  if (x.ndim() != 1) {
    throw ShapeError(fmt::format("bincount: {} is not one-dimensional", x.view().describe()));
  }
  if (!is_integral(x.dtype())) {
    throw DtypeError(fmt::format("bincount: {} is not of an integer dtype", x.view().describe()));
  }
  if (weights.defined() && dtype_kind(weights.dtype()) == 'c') {
    throw DtypeError(
        fmt::format("bincount: the weights {} are complex", weights.view().describe()));
  }
  check_weights("bincount", x, weights);
  if (minlength < 0) {
    throw ValueError(fmt::format("bincount: minlength {} is negative", minlength));
  }
  if (x.size() == 0) return zeros({minlength}, int64, x.device());  // with weights too
  std::int64_t bins = minlength;
  // Read as it is where int64 holds it.
  bool fits = x.dtype() != uint64 && x.dtype() != bool_;
  Array values = fits ? x : x.astype(int64),
        ends = stack(std::vector<Array>{min(values), max(values)});
  auto range = ends.astype(int64, false).to_vector<std::int64_t>();
  if (range[0] < 0) {
    throw ValueError(fmt::format("bincount: {} holds {}, values have to be 0 or more",
                                 x.view().describe(), range[0]));
  }
  bins = std::max(bins, checked_add("bincount", range[1], 1));
  return count("bincount", values, {}, weights, bins, false);
}

HistogramResult histogram(const Array& a, std::int64_t bins, const HistogramOptions& o) {
  return finish("histogram", a, even_edges("histogram", a, bins, o.range), given(o.weights), true,
                o.density);
}

HistogramResult histogram(const Array& a, const Array& bins, const HistogramOptions& o) {
  check_real("histogram", a);
  check_edges("histogram", a, bins);
  if (o.range) throw ValueError("histogram: bins that are edges have a range already");
  return finish("histogram", a, bins, given(o.weights), false, o.density);
}

Array histogram_bin_edges(const Array& a, std::int64_t bins, HistogramRange range) {
  return even_edges("histogram_bin_edges", a, bins, range);
}

HistogramDdResult histogramdd(const Array& sample, const std::vector<Array>& bins,
                              const HistogramDdOptions& options) {
  Array weights = given(options.weights);
  bool density = options.density;
  const char* name = "histogramdd";
  check_real(name, sample);
  if (sample.ndim() != 2 || sample.shape()[1] != static_cast<std::int64_t>(bins.size())) {
    throw ShapeError(
        fmt::format("{}: {} is not (n, {}), points with a coordinate for each of the "
                    "bins given",
                    name, sample.view().describe(), bins.size()));
  }
  std::int64_t points = sample.shape()[0];
  if (weights.defined()) check_weights(name, sample[{Slice(), 0}], weights);
  // The place of each point's cell in the raveled histogram; -1 outside.
  Array cell = zeros({points}, int64, sample.device());
  Array inside = ones({points}, bool_, sample.device());
  Shape shape;
  for (std::size_t d = 0; d < bins.size(); ++d) {
    const Array& edges = bins[d];
    check_edges(name, sample, edges);
    std::int64_t n = edges.size() - 1;
    Array x = sample[{Slice(), static_cast<int>(d)}];
    Array bin = rensa::detail::places_in(name, edges, x, true) - 1;
    bin = where(equal(x, edges[Slice(n, n + 1)]), minimum(bin, n - 1), bin);
    inside = inside & greater_equal(bin, 0) & less(bin, n);
    cell = cell * n + bin;
    shape.push_back(n);
  }
  cell = where(inside, cell, -1);
  Array hist = count(name, cell, {}, weights, shape.total(), false).astype(float64).reshape(shape);
  if (density) {
    Array whole = sum(hist);
    for (std::size_t d = 0; d < bins.size(); ++d) {
      std::int64_t n = shape[static_cast<int>(d)];
      Shape aligned = Shape::filled(shape.ndim(), 1);
      aligned[static_cast<int>(d)] = n;
      hist =
          hist / (bins[d][Slice(1, none)] - bins[d][Slice(0, n)]).astype(float64).reshape(aligned);
    }
    hist = hist / whole;
  }
  return {hist, bins};
}

HistogramDdResult histogramdd(const Array& sample, const std::vector<std::int64_t>& bins,
                              const HistogramDdOptions& options) {
  const std::vector<HistogramRange>& range = options.range;
  check_real("histogramdd", sample);
  if (sample.ndim() != 2 || (!range.empty() && range.size() != bins.size())) {
    throw ShapeError(fmt::format("histogramdd: {} with {} numbers of bins and {} ranges",
                                 sample.view().describe(), bins.size(), range.size()));
  }
  std::vector<Array> edges;
  for (std::size_t d = 0; d < bins.size() && static_cast<std::int64_t>(d) < sample.shape()[1];
       ++d) {
    edges.push_back(even_edges("histogramdd", sample[{Slice(), static_cast<int>(d)}], bins[d],
                               range.empty() ? HistogramRange() : range[d]));
  }
  return histogramdd(sample, edges, options);
}

HistogramDdResult histogram2d(const Array& x, const Array& y, std::int64_t bins,
                              const HistogramDdOptions& options) {
  check_defined("histogram2d", x);
  check_defined("histogram2d", y);
  Array sample = stack(std::vector<Array>{x, y}, 1);
  return histogramdd(sample, std::vector<std::int64_t>{bins, bins}, options);
}

HistogramDdResult histogram2d(const Array& x, const Array& y, const Array& x_edges,
                              const Array& y_edges, const HistogramDdOptions& options) {
  check_defined("histogram2d", x);
  check_defined("histogram2d", y);
  Array sample = stack(std::vector<Array>{x, y}, 1);
  return histogramdd(sample, std::vector<Array>{x_edges, y_edges}, options);
}

}  // namespace xp

}  // namespace rensa

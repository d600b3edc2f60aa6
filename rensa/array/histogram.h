// Counts of values and histograms, NumPy's names.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "rensa/array/routines.h"

namespace rensa::xp {

/// How often each of 0, 1, ... stands in the 1-d integer array `x` (int64), or the sums (float64)
/// of its `weights`; at least `minlength` of them. Waits for the device: the size depends on the
/// values. On a GPU weights are added in any order. Throws DtypeError, ShapeError, ValueError (a
/// negative value).
[[nodiscard]] Array bincount(const Array& x, const Array& weights = {}, std::int64_t minlength = 0);

/// The least and the greatest value of a histogram; found when left out.
using HistogramRange = std::optional<std::pair<double, double>>;
/// What histogram gives.
struct HistogramResult {
  Array hist, bin_edges;  // the counts, and the edges of the bins: one more
};
/// How many of a's elements fall into each of `bins` equal bins of `range` (from the least to the
/// greatest element where left out), or the sums of their `weights` (of a's shape); `density`
/// divides by the whole and the width of the bin. The last bin holds its right edge too; what lies
/// outside, and NaN, is left out. On a GPU weights are added in any order. Throws ValueError, and
/// for a range found that is not finite on the CPU (a GPU is not waited for); ShapeError,
/// DtypeError for complex a.
struct HistogramOptions {
  rensa::detail::NamedOptions named = {};
  HistogramRange range = {};  // not for bins that are edges
  ArrayOption weights = {};
  bool density = false;
};
[[nodiscard]] HistogramResult histogram(const Array& a, std::int64_t bins = 10,
                                        const HistogramOptions& options = {});
/// Over bins given by their edges, a 1-d array that rises (checked on the CPU).
[[nodiscard]] HistogramResult histogram(const Array& a, const Array& bins,
                                        const HistogramOptions& options = {});
/// The edges alone.
[[nodiscard]] Array histogram_bin_edges(const Array& a, std::int64_t bins = 10,
                                        HistogramRange range = {});

/// Histograms of points of several coordinates: the columns of `sample` (n, d), float64. Each
/// coordinate has a number of equal bins, or edges of its own.
struct HistogramDdResult {
  Array hist;
  std::vector<Array> edges;
};
struct HistogramDdOptions {
  rensa::detail::NamedOptions named = {};
  std::vector<HistogramRange> range = {};  // one per coordinate; not for bins that are edges
  ArrayOption weights = {};                // one per point
  bool density = false;                    // divides by the sum and the bins' volumes
};
[[nodiscard]] HistogramDdResult histogramdd(const Array& sample,
                                            const std::vector<std::int64_t>& bins,
                                            const HistogramDdOptions& options = {});
[[nodiscard]] HistogramDdResult histogramdd(const Array& sample, const std::vector<Array>& bins,
                                            const HistogramDdOptions& options = {});
/// Of points (x, y); a row of `hist` is a bin of x.
[[nodiscard]] HistogramDdResult histogram2d(const Array& x, const Array& y, std::int64_t bins = 10,
                                            const HistogramDdOptions& options = {});
[[nodiscard]] HistogramDdResult histogram2d(const Array& x, const Array& y, const Array& x_edges,
                                            const Array& y_edges,
                                            const HistogramDdOptions& options = {});

}  // namespace rensa::xp

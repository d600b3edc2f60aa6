// Medians, quantiles and histograms, NumPy's names.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "rensa/array/routines.h"

namespace rensa::xp {

/// The median over `axis` (all axes where left out): of integers float64, else of a's dtype; NaN
/// where there is a NaN among the elements, or no element. Any dtype.
Array median(const Array& a, Axes axis = {}, bool keepdims = false);
/// The median of what is not NaN.
Array nanmedian(const Array& a, Axes axis = {}, bool keepdims = false);

/// The value below which the share `q` (0 to 1) of the elements over `axis` lies; NaN where there
/// is a NaN. `method` is NumPy's: linear, lower, higher, midpoint, nearest, inverted_cdf,
/// averaged_inverted_cdf, closest_observation, interpolated_inverted_cdf, hazen, weibull,
/// median_unbiased or normal_unbiased. Of integers float64 (lower, higher, nearest, inverted_cdf
/// and closest_observation: their own dtype). `weights`, for inverted_cdf alone, are of a's shape
/// or of that of the reduced axes and not negative (which is not checked). Several q, in float64,
/// give a first axis more. Throws ValueError for q out of range, an unknown method, weights with
/// another method or no elements, DtypeError for complex a, ShapeError for weights of another
/// shape.
Array quantile(const Array& a, double q, Axes axis = {}, std::string_view method = "linear",
               bool keepdims = false, const ArrayOption& weights = {});
Array quantile(const Array& a, const std::vector<double>& q, Axes axis = {},
               std::string_view method = "linear", bool keepdims = false,
               const ArrayOption& weights = {});
/// quantile of q / 100.
Array percentile(const Array& a, double q, Axes axis = {}, std::string_view method = "linear",
                 bool keepdims = false, const ArrayOption& weights = {});
Array percentile(const Array& a, const std::vector<double>& q, Axes axis = {},
                 std::string_view method = "linear", bool keepdims = false,
                 const ArrayOption& weights = {});
/// Those of what is not NaN; NaN where nothing is left.
Array nanquantile(const Array& a, double q, Axes axis = {}, std::string_view method = "linear",
                  bool keepdims = false, const ArrayOption& weights = {});
Array nanquantile(const Array& a, const std::vector<double>& q, Axes axis = {},
                  std::string_view method = "linear", bool keepdims = false,
                  const ArrayOption& weights = {});
Array nanpercentile(const Array& a, double q, Axes axis = {}, std::string_view method = "linear",
                    bool keepdims = false, const ArrayOption& weights = {});
Array nanpercentile(const Array& a, const std::vector<double>& q, Axes axis = {},
                    std::string_view method = "linear", bool keepdims = false,
                    const ArrayOption& weights = {});

}  // namespace rensa::xp

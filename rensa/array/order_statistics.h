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
/// is a NaN. `method` is NumPy's: linear, lower, higher, midpoint, nearest, hazen, weibull,
/// median_unbiased, normal_unbiased or interpolated_inverted_cdf. Of integers float64 (lower,
/// higher and nearest: their own dtype). Several q, in float64, give a first axis more. Throws
/// ValueError for q out of range, an unknown method or no elements, DtypeError for complex a.
Array quantile(const Array& a, double q, Axes axis = {}, std::string_view method = "linear",
               bool keepdims = false);
Array quantile(const Array& a, const std::vector<double>& q, Axes axis = {},
               std::string_view method = "linear", bool keepdims = false);
/// quantile of q / 100.
Array percentile(const Array& a, double q, Axes axis = {}, std::string_view method = "linear",
                 bool keepdims = false);
Array percentile(const Array& a, const std::vector<double>& q, Axes axis = {},
                 std::string_view method = "linear", bool keepdims = false);
/// Those of what is not NaN; NaN where nothing is left.
Array nanquantile(const Array& a, double q, Axes axis = {}, std::string_view method = "linear",
                  bool keepdims = false);
Array nanquantile(const Array& a, const std::vector<double>& q, Axes axis = {},
                  std::string_view method = "linear", bool keepdims = false);
Array nanpercentile(const Array& a, double q, Axes axis = {}, std::string_view method = "linear",
                    bool keepdims = false);
Array nanpercentile(const Array& a, const std::vector<double>& q, Axes axis = {},
                    std::string_view method = "linear", bool keepdims = false);

}  // namespace rensa::xp

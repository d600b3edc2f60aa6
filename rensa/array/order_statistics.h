// Medians and quantiles, NumPy's names.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "rensa/array/routines.h"

#include "rensa/array/begin_axis_forms.h"

namespace rensa::xp {

/// The median over `axis` (all axes where left out): of integers float64, else of a's dtype; NaN
/// where there is a NaN among the elements, or no element. Any dtype.
RENSA_AXIS_AND_KEEPDIMS_FORMS(median, AxisOptions)
/// The median of what is not NaN.
RENSA_AXIS_AND_KEEPDIMS_FORMS(nanmedian, AxisOptions)

/// The q of quantile: a number, several, or an array of any shape, which waits for the device.
class Shares {
 public:
  template <class T>
  requires std::is_arithmetic_v<T> Shares(T q) : values_{static_cast<double>(q)}, single_(true) {}
  Shares(std::initializer_list<double> q) : Shares(std::vector<double>(q)) {}
  Shares(std::vector<double> q)
      : values_(std::move(q)), shape_{static_cast<std::int64_t>(values_.size())} {}
  Shares(const Array& q);
  /// Of a number or a list; in an array's order.
  const std::vector<double>& values() const { return values_; }
  const Shape& shape() const { return shape_; }  // () of a number
  bool single() const { return single_; }        // whether it was a number and no list

 private:
  std::vector<double> values_;
  Shape shape_;
  bool single_ = false;
};

/// NumPy's keywords of quantile and its relatives.
struct QuantileOptions {
  rensa::detail::NamedOptions named = {};
  Axes axis = {};                      // all when left out
  std::string_view method = "linear";  // what lies between two elements, by NumPy's words
  bool keepdims = false;               // the reduced axes stay, of extent 1
  ArrayOption weights = {};            // for inverted_cdf alone
  ArrayOption out = {};  // of the result's shape, converted ("same_kind"); what the call returns
};

/// The value below which the share `q` (0 to 1) of the elements over `axis` lies; NaN where there
/// is a NaN. `method` is NumPy's: linear, lower, higher, midpoint, nearest, inverted_cdf,
/// averaged_inverted_cdf, closest_observation, interpolated_inverted_cdf, hazen, weibull,
/// median_unbiased or normal_unbiased. Of integers float64 (lower, higher, nearest, inverted_cdf
/// and closest_observation: their own dtype). `weights`, for inverted_cdf alone, are of a's shape
/// or of that of the reduced axes and not negative (which is not checked). Several q, in float64,
/// give their axes in front. Throws ValueError for q out of range, an unknown method, weights with
/// another method or no elements, DtypeError for complex a, ShapeError for weights of another
/// shape.
#define RENSA_DECLARE_QUANTILE(name)                                                               \
  Array name(const Array& a, const Shares& q, const QuantileOptions& options = {});                \
  template <AxisLike T> [[nodiscard]] Array name(const Array& a, const Shares& q, const T& axis) { \
    return name(a, q, QuantileOptions{.axis = axis});                                              \
  }                                                                                                \
  template <std::same_as<int> I>                                                                   \
  [[nodiscard]] Array name(const Array& a, const Shares& q, std::initializer_list<I> axes) {       \
    return name(a, q, QuantileOptions{.axis = Axes(axes)});                                        \
  }
RENSA_DECLARE_QUANTILE(quantile)
/// quantile of q / 100.
RENSA_DECLARE_QUANTILE(percentile)
/// Those of what is not NaN; NaN where nothing is left.
RENSA_DECLARE_QUANTILE(nanquantile)
RENSA_DECLARE_QUANTILE(nanpercentile)
#undef RENSA_DECLARE_QUANTILE

}  // namespace rensa::xp

#include "rensa/array/end_axis_forms.h"

// Statistics of whole arrays or along axes. None of them waits for the device.
#pragma once

#include "rensa/array/routines.h"

namespace rensa::xp {

/// NumPy's keywords of var and std.
struct VarianceOptions {
  rensa::detail::NamedOptions named = {};
  Axes axis = {};
  /// What is taken off the count that the squares are divided by (the array API's correction).
  double ddof = 0;
  bool keepdims = false;
  std::optional<Dtype> dtype = {};  // of the result; bool and integers give float64 else
  ArrayOption out = {};
  ArrayOption where = {};  // bool: which elements count
};

// var(a), var(a, 1), var(a, {0, 1}), var(a, axes, ddof, keepdims), var(a, {.axis = 1, ...}).
#define RENSA_DECLARE_VARIANCE(name)                                                         \
  Array name(const Array& a, Axes axis, double ddof, bool keepdims = false);                 \
  Array name(const Array& a, const VarianceOptions& options);                                \
  inline Array name(const Array& a) { return name(a, Axes(), 0); }                           \
  template <AxisLike T> Array name(const Array& a, const T& axis) {                          \
    return name(a, Axes(axis), 0);                                                           \
  }                                                                                          \
  template <std::same_as<int> I> Array name(const Array& a, std::initializer_list<I> axes) { \
    return name(a, Axes(axes), 0);                                                           \
  }
/// The mean of |a - mean(a)|^2, in two passes; of complex numbers it is real. 16-bit floats are
/// computed in float32.
RENSA_DECLARE_VARIANCE(var)
/// The square root of var. (The name hides nothing: `std::` still is the namespace.)
RENSA_DECLARE_VARIANCE(std)

// NaN left out; NaN where nothing else is (for var and std: not more than ddof numbers).
Array nanmean(const Array& a, Axes axis = {}, bool keepdims = false);
Array nanvar(const Array& a, Axes axis = {}, double ddof = 0, bool keepdims = false);
Array nanstd(const Array& a, Axes axis = {}, double ddof = 0, bool keepdims = false);
/// Positions as of argmax and argmin; -1 where everything is NaN (NumPy raises, which would have to
/// wait for the device).
Array nanargmax(const Array& a);
Array nanargmax(const Array& a, int axis, bool keepdims = false);
Array nanargmin(const Array& a);
Array nanargmin(const Array& a, int axis, bool keepdims = false);

/// max - min. Throws DtypeError for bool and complex.
Array ptp(const Array& a, Axes axis = {}, bool keepdims = false);

struct AverageOptions {
  rensa::detail::NamedOptions named = {};
  Axes axis = {};
  /// Of a's shape, or of the shape of the reduced axes, in their order in `a`.
  ArrayOption weights = {};
  bool keepdims = false;
  Array* returned = nullptr;  // where to put the sums of the weights, of the result's shape
};
/// sum(a * weights) / sum(weights), or the mean. Weights whose sum is 0 give NaN or infinities
/// (NumPy raises). Throws ShapeError for weights of another shape.
Array average(const Array& a, const AverageOptions& options = {});
Array average(const Array& a, Axes axis, const Array& weights);

}  // namespace rensa::xp

// Statistics of whole arrays or along axes. None of them waits for the device.
#pragma once

#include <utility>

#include "rensa/array/routines.h"

#include "rensa/array/begin_axis_forms.h"

namespace rensa::xp {

/// The mean of |a - mean(a)|^2, in two passes; of complex numbers it is real. 16-bit floats are
/// computed in float32.
RENSA_AXIS_FORM(var, VarianceOptions)
/// The square root of var. (The name hides nothing: `std::` still is the namespace.)
RENSA_AXIS_FORM(std, VarianceOptions)

// NaN left out; NaN where nothing else is (for var and std: not more than ddof numbers).
RENSA_AXIS_AND_KEEPDIMS_FORMS(nanmean, ReduceOptions)
RENSA_AXIS_FORM(nanvar, VarianceOptions)
RENSA_AXIS_FORM(nanstd, VarianceOptions)
/// Positions as of argmax and argmin; -1 where everything is NaN (NumPy raises, which would have to
/// wait for the device).
RENSA_AXIS_AND_KEEPDIMS_FORMS(nanargmax, AxisOptions)
RENSA_AXIS_AND_KEEPDIMS_FORMS(nanargmin, AxisOptions)

/// max - min. Throws DtypeError for bool and complex.
RENSA_AXIS_AND_KEEPDIMS_FORMS(ptp, AxisOptions)

struct AverageOptions {
  rensa::detail::NamedOptions named = {};
  Axes axis = {};  // all when left out
  /// Of a's shape, or of the shape of the reduced axes, in their order in `a`.
  ArrayOption weights = {};
  bool keepdims = false;  // the reduced axes stay, of extent 1
};
/// sum(a * weights) / sum(weights), or the mean. Weights whose sum is 0 give NaN or infinities
/// (NumPy raises). Throws ShapeError for weights of another shape.
[[nodiscard]] Array average(const Array& a, const AverageOptions& options = {});
[[nodiscard]] Array average(const Array& a, Axes axis, const Array& weights);
/// average(returned=True): the averages, and the sums of the weights, of their shape.
[[nodiscard]] std::pair<Array, Array> average_returned(const Array& a,
                                                       const AverageOptions& options = {});

}  // namespace rensa::xp

#include "rensa/array/end_axis_forms.h"

// Running sums and products along an axis, NumPy's names.
#pragma once

#include "rensa/array/routines.h"

#include "rensa/array/begin_axis_forms.h"

namespace rensa::xp {

/// The running sums along `axis`; of the raveled array where it is left out. Bool and narrow
/// integers give (u)int64; `dtype` says otherwise (elements are converted before they are added).
/// Sums of float16 and bfloat16 are carried in float. On a GPU the rounding of long 1-d float sums
/// may differ between runs. Throws IndexError, ValueError, ShapeError, DtypeError.
RENSA_AXIS_FORM(cumsum, ScanOptions)
/// As cumsum, products.
RENSA_AXIS_FORM(cumprod, ScanOptions)
/// As cumsum and cumprod with NaN taken for 0 (1).
RENSA_AXIS_FORM(nancumsum, ScanOptions)
RENSA_AXIS_FORM(nancumprod, ScanOptions)
/// The array API's. Throws ValueError where the axis is missing.
RENSA_AXIS_FORM(cumulative_sum, CumulativeOptions)
RENSA_AXIS_FORM(cumulative_prod, CumulativeOptions)

}  // namespace rensa::xp

#include "rensa/array/end_axis_forms.h"

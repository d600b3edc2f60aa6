// Running sums and products along an axis, NumPy's names.
#pragma once

#include <optional>

#include "rensa/array/routines.h"

namespace rensa::xp {

/// The running sums along `axis`; of the raveled array where it is left out. Bool and narrow
/// integers give (u)int64; `dtype` says otherwise (elements are converted before they are added).
/// Sums of float16 and bfloat16 are carried in float. `out` is written and returned where given: of
/// the result's shape, any dtype of the result's kind. On a GPU the rounding of long 1-d float sums
/// may differ between runs. Throws IndexError, ValueError, ShapeError, DtypeError.
Array cumsum(const Array& a, Axes axis = {}, std::optional<Dtype> dtype = {},
             const Array* out = nullptr);
/// As cumsum, products.
Array cumprod(const Array& a, Axes axis = {}, std::optional<Dtype> dtype = {},
              const Array* out = nullptr);
/// As cumsum and cumprod with NaN taken for 0 (1).
Array nancumsum(const Array& a, Axes axis = {}, std::optional<Dtype> dtype = {},
                const Array* out = nullptr);
Array nancumprod(const Array& a, Axes axis = {}, std::optional<Dtype> dtype = {},
                 const Array* out = nullptr);
/// The array API's: `axis` may be left out for 0-d and 1-d arrays only; `include_initial` puts a 0
/// (1) in front. Throws ValueError where the axis is missing.
Array cumulative_sum(const Array& a, Axes axis = {}, std::optional<Dtype> dtype = {},
                     bool include_initial = false);
Array cumulative_prod(const Array& a, Axes axis = {}, std::optional<Dtype> dtype = {},
                      bool include_initial = false);

}  // namespace rensa::xp

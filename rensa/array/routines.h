// The routines of namespace xp, NumPy's names; each runs on the device of its operands.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "rensa/array/array.h"
#include "rensa/array/common_ufuncs.h"
#include "rensa/array/creation.h"
#include "rensa/array/indexing_routines.h"
#include "rensa/array/manipulation.h"
#include "rensa/array/options.h"
#include "rensa/core/ufunc_info.h"

namespace rensa::xp {

// --- elementwise, of three inputs (array/routines_elementwise.cc) ---
// Those of one and two are objects: those in common use are in array/common_ufuncs.h, all of them
// by subject in array/ufuncs/.
#define RENSA_TERNARY_OF(name, B, C)                  \
  [[nodiscard]] Array name(const Array& a, B b, C c); \
  Array name(const Array& a, B b, C c, const UfuncOptions& options);
#define RENSA_TERNARY(name)                          \
  RENSA_TERNARY_OF(name, const Array&, const Array&) \
  RENSA_TERNARY_OF(name, const Array&, Scalar)       \
  RENSA_TERNARY_OF(name, Scalar, const Array&)       \
  RENSA_TERNARY_OF(name, Scalar, Scalar)
RENSA_TERNARY(where)
RENSA_TERNARY(clip)
#undef RENSA_TERNARY
#undef RENSA_TERNARY_OF

/// An operand of `elementwise`: an array or a number.
struct ElementwiseArgument {
  ElementwiseArgument(const Array& a) : array(&a) {}
  template <std::convertible_to<Scalar> T> ElementwiseArgument(T number) : scalar(number) {}
  const Array* array = nullptr;
  Scalar scalar;  // where `array` is null
};
/// Any row of ops.def, internal ones too: broadcasts, promotes, allocates (or writes `out`), runs.
Array elementwise(Ufunc ufunc, std::initializer_list<ElementwiseArgument> arguments,
                  const Array* out = nullptr);

// --- reductions (array/routines_reductions.cc) ---
#include "rensa/array/begin_axis_forms.h"
#define RENSA_DECLARE_REDUCTION(name) RENSA_AXIS_AND_KEEPDIMS_FORMS(name, ReduceOptions)
RENSA_DECLARE_REDUCTION(sum)   // the sum over the axes; bool and narrow integers in 64 bits
RENSA_DECLARE_REDUCTION(prod)  // the product over the axes; bool and narrow integers in 64 bits
RENSA_DECLARE_REDUCTION(mean)  // the mean over the axes; float64 of integers. NaN of nothing.
/// The greatest; NaN where there is one. Throws ValueError for nothing.
RENSA_DECLARE_REDUCTION(max)
RENSA_DECLARE_REDUCTION(min)  // the least; NaN where there is one. Throws ValueError for nothing.
RENSA_DECLARE_REDUCTION(any)  // whether one is not 0: bool
RENSA_DECLARE_REDUCTION(all)  // whether none is 0: bool
// NaN left out; where nothing else is, nansum gives 0, nanprod 1, nanmax and nanmin NaN.
RENSA_DECLARE_REDUCTION(nansum)
RENSA_DECLARE_REDUCTION(nanprod)
RENSA_DECLARE_REDUCTION(nanmax)
RENSA_DECLARE_REDUCTION(nanmin)
/// How many are not 0, as int64; NaN is one of them.
RENSA_AXIS_AND_KEEPDIMS_FORMS(count_nonzero, AxisOptions)
/// The place (int64) of the first greatest (least) element along one axis; in the flattened array
/// without one. NaN is greater and less than all else.
RENSA_AXIS_AND_KEEPDIMS_FORMS(argmax, AxisOptions)
RENSA_AXIS_AND_KEEPDIMS_FORMS(argmin, AxisOptions)
#undef RENSA_DECLARE_REDUCTION
#include "rensa/array/end_axis_forms.h"
/// Waits for the device.
bool array_equal(const Array& a, const Array& b, bool equal_nan = false);
/// array_equal of what the two broadcast to; false where they do not. Waits for the device.
bool array_equiv(const Array& a, const Array& b);
/// |a - b| <= atol + rtol * |b|, as bool; infinities are close to themselves.
[[nodiscard]] Array isclose(const Array& a, const Array& b, double rtol = 1e-5, double atol = 1e-8,
                            bool equal_nan = false);
/// all(isclose). Waits for the device.
bool allclose(const Array& a, const Array& b, double rtol = 1e-5, double atol = 1e-8,
              bool equal_nan = false);

// --- products (array/linalg_matmul.cc) ---
/// NumPy's matmul: 1-d operands are promoted, leading axes broadcast. An `out` of the product's
/// dtype whose rows, or columns, are contiguous is written where it lies, whatever its strides
/// between them; for another, or one that shares elements with an operand, the product is made
/// apart and copied. Operands are read where they lie under the same terms. Throws ShapeError,
/// DtypeError.
Array matmul(const Array& a, const Array& b, const MatmulOptions& options = {});
/// NumPy's dot: matmul, but for more than two axes the sums over a's last axis and b's last but
/// one.
Array dot(const Array& a, const Array& b, const ProductOptions& options = {});
/// x @ w.T + bias for x (n, k), w (m, k), bias (m,) or undefined; the products of functions/linear.
[[nodiscard]] Array linear(const Array& x, const Array& w, const Array& bias);

}  // namespace rensa::xp

// Sorting and searching, NumPy's names. Every dtype is taken; NaN comes last, complex numbers are
// ordered by real part, then by imaginary part.
#pragma once

#include <span>
#include <string_view>

#include "rensa/array/routines.h"

#include "rensa/array/begin_axis_forms.h"

namespace rensa::xp {

/// A sorted copy along `axis`; `none` sorts the raveled array. Every sort is stable, except
/// that zeros of different sign may come in either order. `descending` turns the order round, NaN
/// first. Throws IndexError.
RENSA_AXIS_FORM(sort, SortOptions)
/// The places (int64) along `axis` that a sorted array is taken from; equal elements, zeros of
/// either sign too, stay in their order, also with `descending`.
RENSA_AXIS_FORM(argsort, SortOptions)
/// The order by several keys of one shape, the last one first. Throws ValueError for no key,
/// ShapeError.
[[nodiscard]] Array lexsort(std::span<const Array> keys, int axis = -1);
[[nodiscard]] Array lexsort(std::initializer_list<Array> keys, int axis = -1);
[[nodiscard]] Array lexsort(const Array& keys, int axis = -1);  // its rows
/// sort along the first axis.
[[nodiscard]] Array msort(const Array& a);
/// sort of `a` as complex numbers: complex64 for integers of up to 16 bits, else complex128.
[[nodiscard]] Array sort_complex(const Array& a);

/// `a` with what a sorted array holds at `kth` there, nothing greater before and nothing less
/// behind. Throws ValueError for a place out of range.
[[nodiscard]] Array partition(const Array& a, const IntegerList& kth, Axes axis = -1);
/// The places (int64) that partition takes its elements from.
[[nodiscard]] Array argpartition(const Array& a, const IntegerList& kth, Axes axis = -1);

/// Where to insert `v` (any shape) into the 1-d ascending `a`: int64, of v's shape. "left" finds
/// the first place, "right" the last. `sorter` (integers of a's size) lists the order of an `a`
/// that is not sorted itself; what is out of range in it is not found out. Throws ShapeError,
/// DtypeError, ValueError.
[[nodiscard]] Array searchsorted(const Array& a, const Array& v, std::string_view side = "left",
                                 const Array& sorter = {});
[[nodiscard]] Array searchsorted(const Array& a, Scalar v, std::string_view side = "left",
                                 const Array& sorter = {});
/// The bin of each of `x`: i where bins[i-1] <= x < bins[i], with `right` bins[i-1] < x <= bins[i];
/// for falling bins the other way round. Throws ValueError for bins that are not monotonic (on the
/// CPU: a GPU is not waited for), DtypeError for complex x.
[[nodiscard]] Array digitize(const Array& x, const Array& bins, bool right = false);

}  // namespace rensa::xp

namespace rensa::detail {
/// Array's method: sorts the elements of `a` where they stand.
void sort_in_place(const Array& a, int axis = -1, bool descending = false, bool stable = true);
}  // namespace rensa::detail

#include "rensa/array/end_axis_forms.h"

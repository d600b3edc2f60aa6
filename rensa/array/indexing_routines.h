// The routines of xp that index: NumPy's names and rules, and CuPy's scatters. Indices are arrays
// of any integer dtype (DtypeError else); one out of range throws IndexError, on a GPU at the next
// wait. What is written is cast with "same_kind" (DtypeError else).
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "rensa/array/array.h"

namespace rensa::xp {

// --- where an array is not zero: all of these wait for the device, for the count ---
/// The indices of the non-zero elements, an int64 array for each axis, in C order. Throws
/// ValueError for a 0-d array.
[[nodiscard]] std::vector<Array> nonzero(const Array& a);
[[nodiscard]] std::vector<Array> where(const Array& condition);
/// The same as the rows of one array (number, a.ndim).
[[nodiscard]] Array argwhere(const Array& a);
/// Positions in the flattened array.
[[nodiscard]] Array flatnonzero(const Array& a);
/// The elements of the flattened `a` where the flattened `condition` is not zero.
[[nodiscard]] Array extract(const Array& condition, const Array& a);
/// The slices along `axis` (elements of the flattened array without one) where the 1-d `condition`
/// is not zero. Throws ValueError where it has other than one dimension, IndexError where it is
/// true beyond the array.
Array compress(const Array& condition, const Array& a, const CompressOptions& options = {});
template <AxisLike T>
[[nodiscard]] Array compress(const Array& condition, const Array& a, const T& axis) {
  return compress(condition, a, CompressOptions{.axis = axis});
}
/// Writes `values`, one after the other and as often as needed, where `mask` (of a's size) is not
/// zero. Throws ValueError for no values.
void place(const Array& a, const Array& mask, const Array& values);

// --- by integer arrays ---
/// Slices along `axis`, whose place the axes of `indices` take; without an axis elements of the
/// flattened `a`, in the shape of `indices`.
Array take(const Array& a, const Array& indices, const TakeOptions& options = {});
template <AxisLike T>
[[nodiscard]] Array take(const Array& a, const Array& indices, const T& axis) {
  return take(a, indices, TakeOptions{.axis = axis});
}
/// out[i, j, k] = a[i, indices[i, j, k], k] for axis 1; the other axes broadcast. Throws
/// ShapeError.
[[nodiscard]] Array take_along_axis(const Array& a, const Array& indices, int axis = -1);
/// The other way; `values` broadcasts to the shape of the indices. The last of equal indices stays.
void put_along_axis(const Array& a, const Array& indices, const Array& values, int axis);
/// Writes `values`, repeated as needed, into the flattened `a` at `indices`; the last of equal
/// indices stays.
void put(const Array& a, const Array& indices, const Array& values,
         IndexModeOption mode = IndexMode::raise);
/// a.flat[n] = values.flat[n % size] where mask.flat[n] is not zero. Throws ValueError where mask
/// and a differ in size.
void putmask(const Array& a, const Array& mask, const Array& values);
/// out[i] = choices[a[i]][i], all broadcast. Negative indices are out of range, but for `wrap` and
/// `clip`.
Array choose(const Array& a, std::span<const Array> choices, const ChooseOptions& options = {});
Array choose(const Array& a, std::initializer_list<Array> choices,
             const ChooseOptions& options = {});
/// The element of the first choice whose condition (bool) is true, else `otherwise`. Throws
/// ValueError unless there are as many choices as conditions, DtypeError for other conditions.
[[nodiscard]] Array select(std::span<const Array> conditions, std::span<const Array> choices,
                           Scalar otherwise = 0);
[[nodiscard]] Array select(std::initializer_list<Array> conditions,
                           std::initializer_list<Array> choices, Scalar otherwise = 0);

/// a[index] += values, with every one of equal indices counting, in their order: results are
/// repeatable. The index is one of a[...]: an array, or a list of entries.
void scatter_add(const Array& a, const Array& index, const Array& values);
void scatter_add(const Array& a, const Array& index, Scalar value);
void scatter_add(const Array& a, std::initializer_list<Index> index, const Array& values);
void scatter_add(const Array& a, std::initializer_list<Index> index, Scalar value);
/// a[index] = maximum(a[index], values), and minimum, the same way. Throws DtypeError for complex
/// arrays.
void scatter_max(const Array& a, const Array& index, const Array& values);
void scatter_max(const Array& a, const Array& index, Scalar value);
void scatter_max(const Array& a, std::initializer_list<Index> index, const Array& values);
void scatter_max(const Array& a, std::initializer_list<Index> index, Scalar value);
void scatter_min(const Array& a, const Array& index, const Array& values);
void scatter_min(const Array& a, const Array& index, Scalar value);
void scatter_min(const Array& a, std::initializer_list<Index> index, const Array& values);
void scatter_min(const Array& a, std::initializer_list<Index> index, Scalar value);

}  // namespace rensa::xp

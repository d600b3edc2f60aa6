// What the routines along an axis share: an array as the rows of a matrix and back, the sorts and
// scans of such rows, and searches in sorted ones.
#pragma once

#include "rensa/array/routines.h"

namespace rensa::detail {

/// An array and the one axis of it that a routine works along.
struct AlongAxis {
  Array array;
  int axis;
};
/// `a` itself, or raveled where `axis` is `none`. Throws IndexError or ValueError naming
/// `operation`.
AlongAxis along_one_axis(const char* operation, const Array& a, Axes axis);

/// `a` with `axis` moved to the end, as a C-contiguous (rows, n): `a`'s own memory where it can be.
Array rows_along(const Array& a, int axis);
/// The reverse: rows (rows, m) as an array of `shape` but for extent m at `axis`, C-contiguous.
Array from_rows(const Array& rows, Shape shape, int axis);

/// `weights` as an array that broadcasts to `a`: of its shape, or of that of the axes whose bit in
/// `axes` is set. Throws ShapeError naming `operation`.
Array weights_along(const char* operation, const Array& a, const Array& weights, unsigned axes);

/// The rows of `rows` (C-contiguous), each sorted; with `kth` >= 0 only partitioned around it.
Array sorted_rows(const char* operation, const Array& rows, bool descending = false,
                  std::int64_t kth = -1);
/// Where they come from, int64; equal elements in their order.
Array order_of_rows(const char* operation, const Array& rows, bool descending = false,
                    std::int64_t kth = -1);
/// The first k columns of order_of_rows.
Array first_of_rows(const char* operation, const Array& rows, std::int64_t k, bool descending);
/// out[r, i] = rows[r, places[r, i]].
Array take_places(const Array& rows, const Array& places);

/// What running sums of `dtype` are carried in.
Dtype carrier(Dtype dtype);
/// Running sums (products) along `axis`, in `a`'s dtype or one that holds them without a loss.
Array running(const char* operation, bool product, const Array& a, int axis, Dtype dtype);

/// How many elements of `sorted` stand before each of `values`, of one dtype; see SearchSorted.
Array places_in(const char* operation, const Array& sorted, const Array& values, bool right,
                const Array* sorter = nullptr, bool either_way = false);

/// Whether each of `values` equals an element of the 1-d array `sorted`, of its dtype; no NaN does.
/// The other way round with `invert`.
Array found_in(const char* operation, const Array& sorted, const Array& values, bool invert);

}  // namespace rensa::detail

// Inside of array/: an index applied to an array, ready to be gathered or scattered.
#pragma once

#include <span>
#include <vector>

#include "rensa/array/array.h"
#include "rensa/operations/indexing/indexing.h"

namespace rensa::detail {

/// Elements of an array that index arrays choose. What they are read into has the shape of the
/// index arrays (all broadcast to `list_shape`) at `position` of the shape of the other axes.
struct IndexedElements {
  Array base;                  // the steered axes first; slices and integers are applied already
  std::vector<Array> indices;  // one per steered axis
  std::vector<int> axes;       // the steered axes' numbers in the array that was indexed
  Shape list_shape;
  int position = 0;
  int along = -1;         // see IndexedBy
  bool distinct = false;  // surely no element is chosen twice
  IndexMode mode = IndexMode::raise;

  Shape result_shape() const;
};

/// NumPy's rules for a full index. Waits for the device when there is a mask. Throws IndexError,
/// DtypeError, DeviceError.
IndexedElements apply_index(const char* operation, const Array& a, std::span<const Index> index);

/// `a` indexed by `indices` along one axis.
IndexedElements apply_take(const char* operation, const Array& a, const Array& indices, int axis,
                           IndexMode mode);

/// `a` indexed by `indices` along one axis, each at its own place but for that one; the other axes
/// broadcast. Throws ShapeError where they do not, and DtypeError, DeviceError.
IndexedElements apply_along_axis(const char* operation, const Array& a, const Array& indices,
                                 int axis);

[[nodiscard]] Array gather(const char* operation, const IndexedElements& elements);
/// `source` broadcasts to the elements' shape and is cast with "same_kind".
void scatter(const char* operation, operations::ScatterMode mode, const IndexedElements& elements,
             const Array& source);

/// Index `i` of an axis of `a`, counted from the front. Throws IndexError naming `operation`.
std::int64_t normalize_index(const char* operation, std::int64_t i, const Array& a, int axis);

/// Throws IndexError naming `operation` where `count` indices, or several ellipses, are too many.
void check_index_count(const char* operation, const Array& a, int count, int ellipses);

/// Throws DtypeError naming `operation` unless `index` is an integer array.
void check_integer(const char* operation, const Array& index);

/// A 0-d array of `dtype` holding `value`, under the rules of Array::fill.
[[nodiscard]] Array filled_scalar(Scalar value, Dtype dtype, Device device);

/// The elements of `a` where `mask`, of its size and on its device, is not zero, both in C order;
/// of one dimension. Waits for the device.
[[nodiscard]] Array true_elements(const char* operation, const Array& a, const Array& mask);

/// The coordinates of the non-zero elements of `a` as int64 (a.ndim, number), or with `flat` their
/// positions in C order as (1, number). With `by_row` they lie in memory as (number, a.ndim). Waits
/// for the device.
[[nodiscard]] Array true_coordinates(const char* operation, const Array& a, bool flat,
                                     bool by_row = false);

}  // namespace rensa::detail

// ArrayView: what a kernel needs to know of an array. Plain data, owns nothing.
#pragma once

#include <cstdint>
#include <string>

#include "rensa/core/checked.h"
#include "rensa/core/device.h"
#include "rensa/core/dtype.h"
#include "rensa/core/shape.h"

namespace rensa {

struct ArrayView {
  char* data = nullptr;          // the first element
  Dtype dtype = Dtype::float32;  // of the elements
  Device device;                 // where the memory is
  Shape shape;                   // in elements
  Shape strides;                 // in bytes

  int ndim() const { return shape.ndim(); }            // the number of axes
  std::int64_t size() const { return shape.total(); }  // the number of elements
  /// Of all elements. Throws ShapeError beyond 64 bits.
  std::int64_t nbytes() const { return checked_multiply("nbytes", size(), itemsize(dtype)); }
  /// `data`, as elements of type T.
  template <class T> T* as() const { return reinterpret_cast<T*>(data); }

  bool is_c_contiguous() const;  // whether the elements lie in C order without gaps
  /// The half-open byte range, relative to `data`, that the elements lie in (strides may be < 0).
  /// Throws ShapeError naming `operation` where it is further than an address counts.
  void byte_range(std::int64_t* begin, std::int64_t* end,
                  const char* operation = "byte_range") const;
  /// "cuda:0 (5, 4, 3) float32", the way errors speak of an operand.
  std::string describe() const;
};

/// Whether element i of the one is element i of the other.
bool same_view(const ArrayView& a, const ArrayView& b);

/// The same elements with `shape`'s broadcast applied: new axes and stretched ones get stride 0.
/// `view.shape` must broadcast to `shape`.
ArrayView broadcast_view(const ArrayView& view, const Shape& shape);

/// Drops axes of extent 1 and merges neighbouring axes that lie behind one another in every one of
/// the `count` views, which have one shape. What remains has the same elements in the same order;
/// a fully contiguous set becomes one axis.
void collapse_axes(ArrayView* const* views, int count);

}  // namespace rensa

// The methods of Array that are routines of namespace xp.
#include <fmt/format.h>

#include <algorithm>

#include "rensa/array/index_grids.h"
#include "rensa/array/internal.h"
#include "rensa/array/io.h"
#include "rensa/array/math.h"
#include "rensa/array/order_statistics.h"
#include "rensa/array/scan.h"
#include "rensa/array/sorting.h"
#include "rensa/array/statistics.h"
#include "rensa/core/error.h"

namespace rensa {

// --- statistics and mathematics -----------------------------------------------------------------
Array Array::var(Axes axis, double ddof, bool keepdims) const {
  return xp::var(*this, axis, ddof, keepdims);
}
Array Array::std(Axes axis, double ddof, bool keepdims) const {
  return xp::std(*this, axis, ddof, keepdims);
}
Array Array::ptp(Axes axis, bool keepdims) const { return xp::ptp(*this, axis, keepdims); }
Array Array::cumsum(Axes axis) const { return xp::cumsum(*this, axis); }
Array Array::cumprod(Axes axis) const { return xp::cumprod(*this, axis); }
Array Array::trace(std::int64_t offset, int axis1, int axis2) const {
  return xp::trace(*this, offset, axis1, axis2);
}
// Bool stays bool here, as in NumPy: xp::conj gives int8.
Array Array::conj() const { return dtype() == bool_ ? copy() : xp::conj(*this); }
Array Array::real() const { return xp::real(*this); }
Array Array::imag() const { return xp::imag(*this); }
Array Array::round(int decimals) const { return xp::round(*this, decimals); }
Array Array::clip(Scalar least, Scalar most) const { return xp::clip(*this, least, most); }
Array Array::clip(const Array& least, const Array& most) const {
  return xp::clip(*this, least, most);
}

// --- sorting and searching ----------------------------------------------------------------------
void Array::sort(int axis) const { detail::sort_in_place(*this, axis); }
Array Array::argsort(int axis) const { return xp::argsort(*this, axis); }
void Array::partition(std::int64_t kth, int axis) const { assign(xp::partition(*this, kth, axis)); }
Array Array::argpartition(std::int64_t kth, int axis) const {
  return xp::argpartition(*this, kth, axis);
}
Array Array::searchsorted(const Array& values, std::string_view side) const {
  return xp::searchsorted(*this, values, side);
}
std::vector<Array> Array::nonzero() const { return xp::nonzero(*this); }

// --- indexing -----------------------------------------------------------------------------------
Array Array::take(const Array& indices) const { return xp::take(*this, indices); }
Array Array::take(const Array& indices, int axis) const { return xp::take(*this, indices, axis); }
void Array::put(const Array& indices, const Array& values) const {
  xp::put(*this, indices, values);
}
Array Array::choose(std::initializer_list<Array> choices) const {
  return xp::choose(*this, choices);
}
Array Array::compress(const Array& condition) const { return xp::compress(condition, *this); }
Array Array::compress(const Array& condition, int axis) const {
  return xp::compress(condition, *this, axis);
}
void Array::scatter_add(const Array& indices, const Array& values) const {
  xp::scatter_add(*this, indices, values);
}
void Array::scatter_max(const Array& indices, const Array& values) const {
  xp::scatter_max(*this, indices, values);
}
void Array::scatter_min(const Array& indices, const Array& values) const {
  xp::scatter_min(*this, indices, values);
}

// --- shapes and bytes ---------------------------------------------------------------------------
Array Array::repeat(std::int64_t repeats) const { return xp::repeat(*this, repeats); }
Array Array::repeat(std::int64_t repeats, int axis) const {
  return xp::repeat(*this, repeats, axis);
}
Array Array::diagonal(std::int64_t offset, int axis1, int axis2) const {
  return xp::diagonal(*this, offset, axis1, axis2);
}
Array Array::flatten() const { return copy().reshape({-1}); }
Array Array::mT() const { return xp::matrix_transpose(*this); }

Array Array::view(Dtype dtype) const {
  detail::check_defined("view", *this);
  ArrayView result = view_;
  result.dtype = dtype;
  std::int64_t from = itemsize(), to = rensa::itemsize(dtype),
               alignment = std::min<std::int64_t>(to, 8);
  bool aligned =
      reinterpret_cast<std::uintptr_t>(view_.data) % static_cast<std::uintptr_t>(alignment) == 0;
  for (int i = 0; i < ndim(); ++i) {
    bool is_walked = view_.shape[i] > 1 && (i < ndim() - 1 || from == to);
    aligned &= !is_walked || view_.strides[i] % alignment == 0;
  }
  if (!aligned) {
    throw ShapeError(
        fmt::format("view: the elements of {} do not lie where {} may; copy() it first",
                    view_.describe(), dtype_name(dtype)));
  }
  if (from != to) {
    int last = ndim() - 1;
    std::int64_t bytes = ndim() > 0 ? view_.shape[last] * from : 0;
    if (ndim() == 0 || (view_.shape[last] > 1 && view_.strides[last] != from) || bytes % to != 0) {
      throw ShapeError(
          fmt::format("view: {} cannot be seen as {}: the last axis has to be contiguous and hold "
                      "whole elements",
                      view_.describe(), dtype_name(dtype)));
    }
    result.shape[last] = bytes / to;
    result.strides[last] = to;
  }
  return Array(storage_, result);
}

std::string Array::tobytes() const { return xp::tobytes(*this); }
void Array::tofile(const std::string& path) const { xp::tofile(*this, path); }

}  // namespace rensa

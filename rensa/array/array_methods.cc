// The methods of Array and Selection, which are routines of namespace xp.
#include <fmt/format.h>

#include <algorithm>

#include "rensa/array/index_grids.h"
#include "rensa/array/internal.h"
#include "rensa/array/io.h"
#include "rensa/array/math.h"
#include "rensa/array/order_statistics.h"
#include "rensa/array/print.h"
#include "rensa/array/scan.h"
#include "rensa/array/sorting.h"
#include "rensa/array/statistics.h"
#include "rensa/core/error.h"
#include "rensa/device/tracer.h"

namespace rensa {

namespace {

// The same bytes as elements of `dtype`.
Array reinterpreted(const Array& a, Dtype dtype) {
  detail::check_defined("view", a);
  ArrayView result = a.view();
  result.dtype = dtype;
  std::int64_t from = a.itemsize(), to = rensa::itemsize(dtype),
               alignment = std::min<std::int64_t>(to, 8);
  bool aligned =
      reinterpret_cast<std::uintptr_t>(a.view().data) % static_cast<std::uintptr_t>(alignment) == 0;
  for (int i = 0; i < a.ndim(); ++i) {
    bool is_walked = a.view().shape[i] > 1 && (i < a.ndim() - 1 || from == to);
    aligned &= !is_walked || a.view().strides[i] % alignment == 0;
  }
  if (!aligned) {
    throw ShapeError(
        fmt::format("view: the elements of {} do not lie where {} may; copy() it first",
                    a.view().describe(), dtype_name(dtype)));
  }
  if (from != to) {
    int last = a.ndim() - 1;
    std::int64_t bytes = a.ndim() > 0 ? a.view().shape[last] * from : 0;
    if (a.ndim() == 0 || (a.view().shape[last] > 1 && a.view().strides[last] != from) ||
        bytes % to != 0) {
      throw ShapeError(
          fmt::format("view: {} cannot be seen as {}: the last axis has to be contiguous and hold "
                      "whole elements",
                      a.view().describe(), dtype_name(dtype)));
    }
    result.shape[last] = bytes / to;
    result.strides[last] = to;
  }
  return Array(a.storage(), result);
}

}  // namespace

// --- what an array is ---
template <class Self> std::int64_t ArrayMethods<Self>::shape(int axis) const {
  return shape()[normalize_axis("shape", axis, ndim())];
}

template <class Self> FirstAxisIterator ArrayMethods<Self>::begin() const {
  const Array& a = array();
  detail::check_defined("iteration", a);
  if (a.ndim() == 0) {
    throw ShapeError(
        fmt::format("iteration: {} has no axis to go along; take its item()", a.view().describe()));
  }
  return {a, 0};
}
template <class Self> FirstAxisIterator ArrayMethods<Self>::end() const {
  return {array(), ndim() == 0 ? 0 : shape()[0]};
}

template <class Self> std::string ArrayMethods<Self>::str() const {
  read_on_host("str");
  if (!defined()) return "array(undefined)";
  const Array& a = array();
  return a.ndim() == 0 ? xp::array_str(a) : xp::array_repr(a);
}

// --- views and copies ---
template <class Self> Array ArrayMethods<Self>::reshape(const Shape& shape) const {
  return xp::reshape(array(), shape);
}
template <class Self>
Array ArrayMethods<Self>::reshape(const Shape& shape, const xp::ReshapeOptions& options) const {
  return xp::reshape(array(), shape, options);
}
template <class Self> Array ArrayMethods<Self>::transpose() const { return xp::transpose(array()); }
template <class Self> Array ArrayMethods<Self>::transpose(const Shape& axes) const {
  return xp::transpose(array(), axes);
}
template <class Self> Array ArrayMethods<Self>::swapaxes(int a, int b) const {
  return xp::swapaxes(array(), a, b);
}
template <class Self> Array ArrayMethods<Self>::squeeze() const { return xp::squeeze(array()); }
template <class Self> Array ArrayMethods<Self>::squeeze(int axis) const {
  return xp::squeeze(array(), axis);
}
template <class Self> Array ArrayMethods<Self>::squeeze(const Shape& axes) const {
  return xp::squeeze(array(), axes);
}
template <class Self> Array ArrayMethods<Self>::expand_dims(int axis) const {
  return xp::expand_dims(array(), axis);
}
template <class Self> Array ArrayMethods<Self>::ravel() const { return xp::ravel(array()); }
template <class Self> Array ArrayMethods<Self>::ravel(Order order) const {
  return xp::ravel(array(), order);
}
template <class Self> Array ArrayMethods<Self>::broadcast_to(const Shape& shape) const {
  return xp::broadcast_to(array(), shape);
}
template <class Self> Array ArrayMethods<Self>::view(Dtype dtype) const {
  return reinterpreted(array(), dtype);
}
template <class Self> Array ArrayMethods<Self>::copy() const { return xp::copy(array()); }
template <class Self> Array ArrayMethods<Self>::copy(Order order) const {
  return xp::copy(array(), order);
}
template <class Self> Array ArrayMethods<Self>::astype(Dtype dtype) const {
  return xp::astype(array(), dtype);
}
template <class Self> Array ArrayMethods<Self>::as_dtype(Dtype dtype) const {
  return array().defined() && dtype == array().dtype() ? array() : xp::astype(array(), dtype);
}
template <class Self> Array ArrayMethods<Self>::astype(Dtype dtype, Order order) const {
  return xp::astype(array(), dtype, {.order = order});
}
template <class Self>
Array ArrayMethods<Self>::astype(Dtype dtype, const xp::AstypeOptions& options) const {
  return xp::astype(array(), dtype, options);
}
template <class Self> Array ArrayMethods<Self>::ascontiguous() const {
  return is_contiguous() ? array() : copy();
}

// --- to other devices and to the host ---
template <class Self> Array ArrayMethods<Self>::to(Device device) const {
  return detail::to(array(), device);
}
template <class Self> Array ArrayMethods<Self>::copy(Device device) const {
  return detail::copy(array(), device);
}
template <class Self> Array ArrayMethods<Self>::get() const { return detail::get(array()); }
template <class Self>
void ArrayMethods<Self>::get(const Array& out, const cuda::Stream& stream) const {
  detail::get(array(), out, stream);
}
template <class Self> Scalar ArrayMethods<Self>::item_scalar() const {
  return detail::item(array());
}
template <class Self> void ArrayMethods<Self>::copy_to_host(Dtype dtype, void* out) const {
  detail::copy_to_host(array(), dtype, out);
}

// --- reductions ---
#define RENSA_AXIS_METHOD(name, Options)                                                   \
  template <class Self> Array ArrayMethods<Self>::name(const xp::Options& options) const { \
    return xp::name(array(), options);                                                     \
  }
RENSA_AXIS_METHOD(sum, ReduceOptions)
RENSA_AXIS_METHOD(prod, ReduceOptions)
RENSA_AXIS_METHOD(mean, ReduceOptions)
RENSA_AXIS_METHOD(max, ReduceOptions)
RENSA_AXIS_METHOD(min, ReduceOptions)
RENSA_AXIS_METHOD(any, ReduceOptions)
RENSA_AXIS_METHOD(all, ReduceOptions)
RENSA_AXIS_METHOD(argmax, AxisOptions)
RENSA_AXIS_METHOD(argmin, AxisOptions)
RENSA_AXIS_METHOD(ptp, AxisOptions)
RENSA_AXIS_METHOD(var, VarianceOptions)
RENSA_AXIS_METHOD(std, VarianceOptions)
RENSA_AXIS_METHOD(cumsum, ScanOptions)
RENSA_AXIS_METHOD(cumprod, ScanOptions)
RENSA_AXIS_METHOD(argsort, SortOptions)
#undef RENSA_AXIS_METHOD

// --- mathematics ---
template <class Self>
Array ArrayMethods<Self>::dot(const Array& other, const xp::ProductOptions& options) const {
  return xp::dot(array(), other, options);
}
template <class Self> Array ArrayMethods<Self>::trace(const xp::TraceOptions& options) const {
  return xp::trace(array(), options);
}
template <class Self>
Array ArrayMethods<Self>::trace(std::int64_t offset, int axis1, int axis2) const {
  return xp::trace(array(), offset, axis1, axis2);
}
// Bool stays bool here, as in NumPy: xp::conj gives int8.
template <class Self> Array ArrayMethods<Self>::conj() const {
  return dtype() == bool_ ? array().copy() : xp::conj(array());
}
template <class Self> Array ArrayMethods<Self>::conjugate() const { return conj(); }
template <class Self> Array ArrayMethods<Self>::real() const { return xp::real(array()); }
template <class Self> Array ArrayMethods<Self>::imag() const { return xp::imag(array()); }
template <class Self>
Array ArrayMethods<Self>::round(int decimals, const xp::UfuncOptions& options) const {
  return xp::round(array(), decimals, options);
}
template <class Self>
Array ArrayMethods<Self>::clip(const Bound& least, const Bound& most,
                               const xp::UfuncOptions& options) const {
  auto given = [](const Bound& bound) { return bound.array() || bound.number(); };
  auto argument = [](const Bound& bound) {
    return bound.array() ? xp::ElementwiseArgument(*bound.array())
                         : xp::ElementwiseArgument(*bound.number());
  };
  const Array& a = array();
  if (given(least) && given(most)) {
    return detail::elementwise("clip", ufunc::clip, {a, argument(least), argument(most)}, options);
  }
  const Bound& bound = given(least) ? least : most;
  if (bound.array()) {
    return detail::elementwise("clip", given(least) ? ufunc::maximum : ufunc::minimum,
                               {a, *bound.array()}, options);
  }
  Array result = !bound.number() ? a
                 : given(least)  ? xp::clip(a, *bound.number(), none)
                                 : xp::clip(a, none, *bound.number());
  return detail::elementwise("clip", ufunc::copy, {result}, options);
}

// --- sorting and searching ---
template <class Self>
Array ArrayMethods<Self>::argpartition(const IntegerList& kth, const Axes& axis) const {
  return xp::argpartition(array(), kth, axis);
}
template <class Self>
Array ArrayMethods<Self>::searchsorted(const Array& values, std::string_view side,
                                       ArrayOption sorter) const {
  return xp::searchsorted(array(), values, side, sorter ? *sorter : Array());
}
template <class Self> std::vector<Array> ArrayMethods<Self>::nonzero() const {
  return xp::nonzero(array());
}

// --- indexing ---
template <class Self> Array ArrayMethods<Self>::take(const Array& indices) const {
  return xp::take(array(), indices);
}
template <class Self>
Array ArrayMethods<Self>::take(const Array& indices, const xp::TakeOptions& options) const {
  return xp::take(array(), indices, options);
}
template <class Self>
Array ArrayMethods<Self>::choose(std::span<const Array> choices,
                                 const xp::ChooseOptions& options) const {
  return xp::choose(array(), choices, options);
}
template <class Self>
Array ArrayMethods<Self>::choose(std::initializer_list<Array> choices,
                                 const xp::ChooseOptions& options) const {
  return xp::choose(array(), choices, options);
}
template <class Self>
Array ArrayMethods<Self>::compress(const Array& condition,
                                   const xp::CompressOptions& options) const {
  return xp::compress(condition, array(), options);
}
template <class Self> Array ArrayMethods<Self>::compress(const Array& condition) const {
  return xp::compress(condition, array());
}

// --- shapes and bytes ---
template <class Self> Array ArrayMethods<Self>::repeat(const IntegerList& repeats) const {
  return xp::repeat(array(), repeats);
}
template <class Self> Array ArrayMethods<Self>::repeat(const IntegerList& repeats, int axis) const {
  return xp::repeat(array(), repeats, axis);
}
template <class Self>
Array ArrayMethods<Self>::diagonal(std::int64_t offset, int axis1, int axis2) const {
  return xp::diagonal(array(), offset, axis1, axis2);
}
template <class Self> Array ArrayMethods<Self>::diagonal(const xp::DiagonalOptions& options) const {
  return xp::diagonal(array(), options);
}
template <class Self> Array ArrayMethods<Self>::flatten(Order order) const {
  Array flat = xp::ravel(array(), order);
  return flat.storage() == array().storage() ? xp::copy(flat) : flat;
}
template <class Self> Array ArrayMethods<Self>::mT() const { return xp::matrix_transpose(array()); }

template <class Self> std::string ArrayMethods<Self>::tobytes() const {
  return xp::tobytes(array());
}
template <class Self> void ArrayMethods<Self>::tofile(const std::string& path) const {
  xp::tofile(array(), path);
}

template class ArrayMethods<Array>;
template class ArrayMethods<Selection>;

// --- in place ---
void Array::sort(int axis) const { detail::sort_in_place(*this, axis); }
void Array::sort(const xp::SortOptions& options) const {
  detail::check_writable("sort", *this);
  assign(xp::sort(*this, options).reshape(shape()));
}
void Array::partition(const IntegerList& kth, int axis) const {
  assign(xp::partition(*this, kth, axis));
}
void Array::put(const Array& indices, const Array& values, IndexModeOption mode) const {
  xp::put(*this, indices, values, mode);
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

}  // namespace rensa

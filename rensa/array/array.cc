// Array: views, copies and in-place writes.
#include "rensa/array/array.h"

#include <fmt/format.h>

#include <cmath>

#include "rensa/array/internal.h"
#include "rensa/core/error.h"

namespace rensa {

using detail::check_defined;
using detail::new_array;
using detail::new_view;

std::int64_t Array::shape(int axis) const {
  return view_.shape[normalize_axis("shape", axis, ndim())];
}

Operand Array::operand() const {
  check_defined("operand", *this);
  return {view_, storage_.get()};
}

void check_same_device(const char* operation, const Array& a, const Array& b) {
  if (a.device() == b.device()) return;
  throw DeviceError(fmt::format("{}: operands on {} and {}; move one with .to(...)", operation,
                                a.view().describe(), b.view().describe()));
}

// --- reshape ------------------------------------------------------------------------------------
namespace {

// The shape with its -1 filled in. Throws ShapeError where the element counts differ.
Shape resolve_shape(const Array& a, const Shape& shape) {
  Shape resolved = shape;
  int unknown = -1;
  std::int64_t known = 1;
  bool valid = true;
  for (int i = 0; i < shape.ndim(); ++i) {
    if (shape[i] == -1 && unknown < 0) {
      unknown = i;
    } else {
      valid &= shape[i] >= 0;
      valid &= !__builtin_mul_overflow(known, shape[i], &known);
    }
  }
  if (valid && unknown >= 0) {
    valid = known != 0 && a.size() % known == 0;
    if (valid) resolved[unknown] = a.size() / known;
  } else if (valid) {
    valid = known == a.size();
  }
  if (!valid) {
    throw ShapeError(fmt::format("reshape: {} has {} elements, which do not make shape {}",
                                 a.view().describe(), a.size(), shape.str()));
  }
  return resolved;
}

// The strides under which `view` has `shape` (of the same element count, which is not 0) without a
// copy, or false. Old and new axes are walked in groups of equal element counts; each old group
// must lie evenly in memory.
bool view_strides(const ArrayView& view, const Shape& shape, Shape* strides) {
  Shape old_shape, old_strides;
  for (int i = 0; i < view.ndim(); ++i) {
    if (view.shape[i] == 1) continue;
    old_shape.push_back(view.shape[i]);
    old_strides.push_back(view.strides[i]);
  }
  *strides = Shape::filled(shape.ndim(), rensa::itemsize(view.dtype));
  int new_begin = 0, old_begin = 0;
  while (old_begin < old_shape.ndim()) {
    int new_end = new_begin + 1, old_end = old_begin + 1;
    std::int64_t new_count = shape[new_begin], old_count = old_shape[old_begin];
    while (new_count != old_count) {
      if (new_count < old_count) new_count *= shape[new_end++];
      else old_count *= old_shape[old_end++];
    }
    for (int i = old_begin; i + 1 < old_end; ++i) {
      if (old_strides[i] != old_shape[i + 1] * old_strides[i + 1]) return false;
    }
    (*strides)[new_end - 1] = old_strides[old_end - 1];
    for (int i = new_end - 1; i > new_begin; --i) {
      (*strides)[i - 1] = (*strides)[i] * shape[i];
    }
    new_begin = new_end;
    old_begin = old_end;
  }
  return true;
}

}  // namespace

Array Array::reshape(const Shape& shape) const {
  check_defined("reshape", *this);
  Shape resolved = resolve_shape(*this, shape);
  Shape strides;
  if (is_contiguous()) {
    return new_view(*this, 0, resolved, contiguous_strides(resolved, rensa::itemsize(dtype())));
  }
  if (view_strides(view_, resolved, &strides)) return new_view(*this, 0, resolved, strides);
  return copy().reshape(resolved);
}

Array Array::ravel() const {
  check_defined("ravel", *this);
  return (is_contiguous() ? *this : copy()).reshape({size()});
}

// --- the other views ----------------------------------------------------------------------------
Array Array::transpose() const {
  check_defined("transpose", *this);
  Shape shape = view_.shape, strides = view_.strides;
  for (int i = 0; i < ndim(); ++i) {
    shape[i] = view_.shape[ndim() - 1 - i];
    strides[i] = view_.strides[ndim() - 1 - i];
  }
  return new_view(*this, 0, shape, strides);
}

Array Array::transpose(const Shape& axes) const {
  check_defined("transpose", *this);
  Shape shape = view_.shape, strides = view_.strides;
  unsigned seen = 0;
  for (int i = 0; i < axes.ndim() && axes.ndim() == ndim(); ++i) {
    int axis = normalize_axis("transpose", axes[i], ndim());
    seen |= 1u << axis;
    shape[i] = view_.shape[axis];
    strides[i] = view_.strides[axis];
  }
  if (axes.ndim() != ndim() || seen != (1u << ndim()) - 1) {
    throw ShapeError(fmt::format("transpose: {} are not the {} axes of {}, each once", axes.str(),
                                 ndim(), view_.describe()));
  }
  return new_view(*this, 0, shape, strides);
}

Array Array::swapaxes(int a, int b) const {
  check_defined("swapaxes", *this);
  a = normalize_axis("swapaxes", a, ndim());
  b = normalize_axis("swapaxes", b, ndim());
  Shape shape = view_.shape, strides = view_.strides;
  std::swap(shape[a], shape[b]);
  std::swap(strides[a], strides[b]);
  return new_view(*this, 0, shape, strides);
}

Array Array::squeeze() const {
  check_defined("squeeze", *this);
  Shape shape, strides;
  for (int i = 0; i < ndim(); ++i) {
    if (view_.shape[i] == 1) continue;
    shape.push_back(view_.shape[i]);
    strides.push_back(view_.strides[i]);
  }
  return new_view(*this, 0, shape, strides);
}

Array Array::squeeze(int axis) const {
  check_defined("squeeze", *this);
  axis = normalize_axis("squeeze", axis, ndim());
  if (view_.shape[axis] != 1) {
    throw ShapeError(fmt::format("squeeze: axis {} of {} has extent {}, not 1", axis,
                                 view_.describe(), view_.shape[axis]));
  }
  Shape shape = view_.shape, strides = view_.strides;
  shape.erase(axis);
  strides.erase(axis);
  return new_view(*this, 0, shape, strides);
}

Array Array::expand_dims(int axis) const {
  check_defined("expand_dims", *this);
  axis = normalize_axis("expand_dims", axis, ndim() + 1);
  Shape shape = view_.shape, strides = view_.strides;
  std::int64_t stride = axis < ndim() ? shape[axis] * strides[axis] : rensa::itemsize(dtype());
  shape.insert(axis, 1);
  strides.insert(axis, stride);
  return new_view(*this, 0, shape, strides);
}

Array Array::broadcast_to(const Shape& shape) const {
  check_defined("broadcast_to", *this);
  int added = shape.ndim() - ndim();
  bool fits = added >= 0;
  for (int i = 0; i < ndim() && fits; ++i) {
    fits = view_.shape[i] == shape[added + i] || view_.shape[i] == 1;
  }
  if (!fits) {
    throw ShapeError(fmt::format("broadcast_to: {} does not broadcast to shape {}",
                                 view_.describe(), shape.str()));
  }
  return Array(storage_, broadcast_view(view_, shape));
}

// --- copies -------------------------------------------------------------------------------------
Array Array::copy() const {
  check_defined("copy", *this);
  Array out = new_array(shape(), dtype(), device());
  detail::copy_elements("copy", *this, out);
  return out;
}

Array Array::astype(Dtype dtype, bool copy) const {
  check_defined("astype", *this);
  if (!copy && dtype == this->dtype()) return *this;
  Array out = new_array(shape(), dtype, device());
  detail::copy_elements("astype", *this, out);
  return out;
}

Array Array::ascontiguous() const { return is_contiguous() ? *this : copy(); }

// --- in place -----------------------------------------------------------------------------------
const Array& Array::fill(Scalar value) const {
  check_defined("fill", *this);
  detail::check_writable("fill", *this);
  detail::check_in_range("fill", value, dtype());
  // A float without a fraction is an integer as good as any, an integer is a truth.
  bool whole = value.kind() == 'f' && std::trunc(value.real()) == value.real();
  bool truth = dtype() == bool_ && value.is_integral();
  if (!whole && !truth) detail::check_same_kind("fill", value.result_type(dtype()), *this);
  detail::fill_elements("fill", *this, value);
  return *this;
}

void Array::assign(const Array& source) const {
  check_defined("assign", *this);
  check_defined("assign", source);
  detail::check_writable("assign", *this);
  check_same_device("assign", *this, source);
  detail::check_same_kind("assign", source.dtype(), *this);
  // NumPy lets leading axes of extent 1 fall away in an assignment.
  Array in = source;
  while (in.ndim() > ndim() && in.shape(0) == 1) in = in.squeeze(0);
  int added = ndim() - in.ndim();
  bool fits = added >= 0;
  for (int i = 0; i < in.ndim() && fits; ++i) {
    fits = in.shape()[i] == shape()[added + i] || in.shape()[i] == 1;
  }
  if (!fits) {
    throw ShapeError(fmt::format("assign: {} does not broadcast into {}", source.view().describe(),
                                 view_.describe()));
  }
  if (storage_ == in.storage() && detail::partly_overlap(view_, in.view())) in = in.copy();
  detail::copy_elements("assign", in, *this);
}

}  // namespace rensa

// Array: views, copies and in-place writes.
#include "rensa/array/array.h"

#include <fmt/format.h>

#include <cmath>

#include "rensa/array/internal.h"
#include "rensa/core/checked.h"
#include "rensa/core/error.h"

namespace rensa {

using detail::check_defined;
using detail::new_array;
using detail::new_view;

Operand Array::operand() const {
  check_defined("operand", *this);
  return {view_, storage_.get()};
}

void check_same_device(const char* operation, const Array& a, const Array& b) {
  if (a.device() == b.device()) return;
  throw DeviceError(fmt::format("{}: operands on {} and {}; move one with .to(...)", operation,
                                a.view().describe(), b.view().describe()));
}

// --- reshape ---
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

namespace xp {

Array reshape(const Array& a, const Shape& shape) {
  check_defined("reshape", a);
  Shape resolved = resolve_shape(a, shape);
  Shape strides;
  if (a.is_contiguous()) {
    return new_view(a, 0, resolved, contiguous_strides(resolved, rensa::itemsize(a.dtype())));
  }
  if (view_strides(a.view(), resolved, &strides)) return new_view(a, 0, resolved, strides);
  return reshape(copy(a), resolved);
}

Array ravel(const Array& a) {
  check_defined("ravel", a);
  return reshape(a.is_contiguous() ? a : copy(a), a.size());
}

// --- the other views ---
Array transpose(const Array& a) {
  check_defined("transpose", a);
  Shape shape = a.view().shape, strides = a.view().strides;
  for (int i = 0; i < a.ndim(); ++i) {
    shape[i] = a.view().shape[a.ndim() - 1 - i];
    strides[i] = a.view().strides[a.ndim() - 1 - i];
  }
  return new_view(a, 0, shape, strides);
}

Array transpose(const Array& a, const Shape& axes) {
  check_defined("transpose", a);
  Shape shape = a.view().shape, strides = a.view().strides;
  unsigned seen = 0;
  for (int i = 0; i < axes.ndim() && axes.ndim() == a.ndim(); ++i) {
    int axis = normalize_axis("transpose", axes[i], a.ndim());
    seen |= 1u << axis;
    shape[i] = a.view().shape[axis];
    strides[i] = a.view().strides[axis];
  }
  if (axes.ndim() != a.ndim() || seen != (1u << a.ndim()) - 1) {
    throw ShapeError(fmt::format("transpose: {} are not the {} axes of {}, each once", axes.str(),
                                 a.ndim(), a.view().describe()));
  }
  return new_view(a, 0, shape, strides);
}

Array swapaxes(const Array& a, int axis1, int axis2) {
  check_defined("swapaxes", a);
  axis1 = normalize_axis("swapaxes", axis1, a.ndim());
  axis2 = normalize_axis("swapaxes", axis2, a.ndim());
  Shape shape = a.view().shape, strides = a.view().strides;
  std::swap(shape[axis1], shape[axis2]);
  std::swap(strides[axis1], strides[axis2]);
  return new_view(a, 0, shape, strides);
}

Array squeeze(const Array& a) {
  check_defined("squeeze", a);
  Shape shape, strides;
  for (int i = 0; i < a.ndim(); ++i) {
    if (a.view().shape[i] == 1) continue;
    shape.push_back(a.view().shape[i]);
    strides.push_back(a.view().strides[i]);
  }
  return new_view(a, 0, shape, strides);
}

Array squeeze(const Array& a, int axis) {
  check_defined("squeeze", a);
  axis = normalize_axis("squeeze", axis, a.ndim());
  if (a.view().shape[axis] != 1) {
    throw ShapeError(fmt::format("squeeze: axis {} of {} has extent {}, not 1", axis,
                                 a.view().describe(), a.view().shape[axis]));
  }
  Shape shape = a.view().shape, strides = a.view().strides;
  shape.erase(axis);
  strides.erase(axis);
  return new_view(a, 0, shape, strides);
}

Array expand_dims(const Array& a, int axis) {
  check_defined("expand_dims", a);
  axis = normalize_axis("expand_dims", axis, a.ndim() + 1);
  Shape shape = a.view().shape, strides = a.view().strides;
  std::int64_t stride =
      axis < a.ndim() ? wrapping_multiply(shape[axis], strides[axis]) : rensa::itemsize(a.dtype());
  shape.insert(axis, 1);
  strides.insert(axis, stride);
  return new_view(a, 0, shape, strides);
}

Array broadcast_to(const Array& a, const Shape& shape) {
  check_defined("broadcast_to", a);
  int added = shape.ndim() - a.ndim();
  bool fits = added >= 0;
  for (int i = 0; i < a.ndim() && fits; ++i) {
    fits = a.view().shape[i] == shape[added + i] || a.view().shape[i] == 1;
  }
  if (!fits) {
    throw ShapeError(fmt::format("broadcast_to: {} does not broadcast to shape {}",
                                 a.view().describe(), shape.str()));
  }
  return Array(a.storage(), broadcast_view(a.view(), shape));
}

// --- copies ---
Array copy(const Array& a) {
  check_defined("copy", a);
  Array out = new_array(a.shape(), a.dtype(), a.device());
  rensa::detail::copy_elements("copy", a, out);
  return out;
}

Array astype(const Array& a, Dtype dtype) {
  check_defined("astype", a);
  Array out = new_array(a.shape(), dtype, a.device());
  rensa::detail::copy_elements("astype", a, out);
  return out;
}

}  // namespace xp

// --- in place ---
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

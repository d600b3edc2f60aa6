// Joining and shaping.
#include <fmt/format.h>

#include "rensa/array/internal.h"
#include "rensa/core/error.h"

namespace rensa::xp {

using rensa::detail::check_defined;

Array reshape(const Array& a, const Shape& shape) { return a.reshape(shape); }
Array transpose(const Array& a) { return a.transpose(); }
Array transpose(const Array& a, const Shape& axes) { return a.transpose(axes); }
Array broadcast_to(const Array& a, const Shape& shape) { return a.broadcast_to(shape); }

Array concatenate(std::span<const Array> arrays, int axis) {
  if (arrays.empty()) throw ValueError("concatenate: there is no array to join");
  const Array& first = arrays[0];
  check_defined("concatenate", first);
  int along = normalize_axis("concatenate", axis, first.ndim());
  Shape shape = first.shape();
  Dtype dtype = first.dtype();
  for (const Array& a : arrays.subspan(1)) {
    check_defined("concatenate", a);
    check_same_device("concatenate", first, a);
    bool fits = a.ndim() == first.ndim();
    for (int i = 0; i < first.ndim() && fits; ++i) {
      fits = i == along || a.shape()[i] == first.shape()[i];
    }
    if (!fits) {
      throw ShapeError(fmt::format("concatenate: {} and {} differ outside of axis {}",
                                   first.view().describe(), a.view().describe(), along));
    }
    shape[along] += a.shape()[along];
    dtype = promote_types(dtype, a.dtype());
  }
  Array out = rensa::detail::new_array(shape, dtype, first.device());
  std::int64_t offset = 0;
  for (const Array& a : arrays) {
    Array part = rensa::detail::new_view(out, offset, a.shape(), out.strides());
    rensa::detail::copy_elements("concatenate", a, part);
    offset += a.shape()[along] * out.strides()[along];
  }
  return out;
}

Array concatenate(std::initializer_list<Array> arrays, int axis) {
  return concatenate(std::span<const Array>(arrays.begin(), arrays.size()), axis);
}

Array stack(std::span<const Array> arrays, int axis) {
  std::vector<Array> expanded;
  for (const Array& a : arrays) {
    check_defined("stack", a);
    if (a.shape() != arrays[0].shape()) {
      throw ShapeError(fmt::format("stack: {} and {} differ in shape", arrays[0].view().describe(),
                                   a.view().describe()));
    }
    expanded.push_back(a.expand_dims(axis));
  }
  return concatenate(expanded, axis < 0 && !expanded.empty() ? axis + expanded[0].ndim() : axis);
}

Array sum_to(const Array& a, const Shape& shape) {
  check_defined("sum_to", a);
  if (a.shape() == shape) return a;
  int added = a.ndim() - shape.ndim();
  bool fits = added >= 0;
  unsigned axes = 0;
  for (int i = 0; i < a.ndim() && fits; ++i) {
    std::int64_t extent = i < added ? 1 : shape[i - added];
    fits = extent == a.shape()[i] || extent == 1;
    if (extent != a.shape()[i] || i < added) axes |= 1u << i;
  }
  if (!fits) {
    throw ShapeError(fmt::format("sum_to: {} does not come from broadcasting shape {}",
                                 a.view().describe(), shape.str()));
  }
  return rensa::detail::reduce_axes(Reduction::sum, a, axes)
      .reshape(shape)
      .astype(a.dtype(), false);
}

}  // namespace rensa::xp

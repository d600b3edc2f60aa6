// Layout questions about views: contiguity, extent in memory, broadcasting, collapsing of axes.
#include "rensa/core/array_view.h"

#include <fmt/format.h>

#include "rensa/core/error.h"

namespace rensa {

bool ArrayView::is_c_contiguous() const {
  std::int64_t expected = itemsize(dtype);
  bool contiguous = true;
  for (int i = ndim() - 1; i >= 0; --i) {
    if (shape[i] == 0) return true;
    if (shape[i] == 1) continue;
    contiguous &= strides[i] == expected;
    expected = wrapping_multiply(expected, shape[i]);
  }
  return contiguous;
}

void ArrayView::byte_range(std::int64_t* begin, std::int64_t* end, const char* operation) const {
  *begin = 0;
  *end = 0;
  if (size() == 0) return;
  *end = itemsize(dtype);
  for (int i = 0; i < ndim(); ++i) {
    std::int64_t reach = 0;
    std::int64_t& side = strides[i] < 0 ? *begin : *end;
    if (__builtin_mul_overflow(shape[i] - 1, strides[i], &reach) ||
        __builtin_add_overflow(side, reach, &side)) {
      throw ShapeError(
          fmt::format("{}: shape {} with strides {} reaches further than an address counts",
                      operation, shape.str(), strides.str()));
    }
  }
}

std::string ArrayView::describe() const {
  return fmt::format("{} {} {}", device.str(), shape.str(), dtype_name(dtype));
}

bool same_view(const ArrayView& a, const ArrayView& b) {
  if (a.data != b.data || a.dtype != b.dtype || a.shape != b.shape) return false;
  for (int i = 0; i < a.ndim(); ++i) {
    if (a.shape[i] > 1 && a.strides[i] != b.strides[i]) return false;
  }
  return true;
}

ArrayView broadcast_view(const ArrayView& view, const Shape& shape) {
  ArrayView result = view;
  result.shape = shape;
  result.strides = Shape::filled(shape.ndim(), 0);
  int added = shape.ndim() - view.ndim();
  for (int i = 0; i < view.ndim(); ++i) {
    result.strides[added + i] = view.shape[i] == shape[added + i] ? view.strides[i] : 0;
  }
  return result;
}

namespace {

bool mergeable(ArrayView* const* views, int count, int outer, int inner) {
  for (int v = 0; v < count; ++v) {
    const ArrayView& view = *views[v];
    if (view.strides[outer] != view.strides[inner] * view.shape[inner]) return false;
  }
  return true;
}

}  // namespace

void collapse_axes(ArrayView* const* views, int count) {
  int ndim = views[0]->shape.ndim();
  if (ndim == 0 || (ndim == 1 && views[0]->shape[0] != 1)) return;
  const Shape shape = views[0]->shape;
  Shape merged;               // the extents that remain
  int source[kMaxNdim] = {};  // the innermost old axis of each, whose stride it takes
  for (int i = 0; i < shape.ndim(); ++i) {
    if (shape[i] == 1) continue;
    int last = merged.ndim() - 1;
    if (last >= 0 && mergeable(views, count, source[last], i)) {
      merged[last] *= shape[i];
      source[last] = i;
    } else {
      source[merged.ndim()] = i;
      merged.push_back(shape[i]);
    }
  }
  for (int v = 0; v < count; ++v) {
    Shape strides = merged;
    for (int i = 0; i < merged.ndim(); ++i) strides[i] = views[v]->strides[source[i]];
    views[v]->shape = merged;
    views[v]->strides = strides;
  }
}

}  // namespace rensa

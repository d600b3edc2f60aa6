// The axes of views put into order.
#include "rensa/core/axes.h"

#include <cstdlib>
#include <limits>
#include <utility>

namespace rensa {

void normalize_axes(ArrayView* const* views, int count) {
  const Shape& lead = views[0]->strides;
  // Insertion sort: stable, and the axes are few and mostly in order.
  for (int i = 1; i < lead.ndim(); ++i) {
    for (int k = i; k > 0 && std::abs(lead[k - 1]) < std::abs(lead[k]); --k) {
      for (int v = 0; v < count; ++v) {
        std::swap(views[v]->shape[k - 1], views[v]->shape[k]);
        std::swap(views[v]->strides[k - 1], views[v]->strides[k]);
      }
    }
  }
  collapse_axes(views, count);
}

void permute_axes(ArrayView* view, const Shape& axes) {
  const Shape shape = view->shape, strides = view->strides;
  for (int i = 0; i < axes.ndim(); ++i) {
    view->shape[i] = shape[static_cast<int>(axes[i])];
    view->strides[i] = strides[static_cast<int>(axes[i])];
  }
}

void keep_an_axis(ArrayView* const* views, int count) {
  if (views[0]->ndim() > 0) return;
  for (int v = 0; v < count; ++v) {
    views[v]->shape.push_back(1);
    views[v]->strides.push_back(itemsize(views[v]->dtype));
  }
}

ArrayView part_of_axes(const ArrayView& view, unsigned axes, bool reduced) {
  ArrayView part = view;
  part.shape = part.strides = {};
  for (int axis = 0; axis < view.ndim(); ++axis) {
    if ((axes >> axis & 1) != static_cast<unsigned>(reduced)) continue;
    part.shape.push_back(view.shape[axis]);
    part.strides.push_back(view.strides[axis]);
  }
  return part;
}

std::int64_t densest_stride(const ArrayView& view) {
  if (view.ndim() == 0) return std::numeric_limits<std::int64_t>::max();
  return std::abs(view.strides[view.ndim() - 1]);
}

}  // namespace rensa

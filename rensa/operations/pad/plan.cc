// The axes of a padded array.
#include "rensa/operations/pad/pad.h"

namespace rensa::operations {

PadPlan::PadPlan(const Pad& op)
    : in(op.in.view.data), out(op.out.view.data), size(itemsize(op.out.view.dtype)) {
  const ArrayView &from = op.in.view, &to = op.out.view;
  for (int i = 0; i < to.ndim(); ++i) {
    Axis axis{to.shape[i], from.shape[i], op.before[i], from.strides[i]};
    bool is_bare = axis.in == axis.out;
    if (is_bare && axis.in == 1) continue;
    Axis* outer = ndim > 0 ? &axes[ndim - 1] : nullptr;
    if (is_bare && outer && (outer->in <= 1 || outer->stride == axis.in * axis.stride)) {
      *outer = {outer->out * axis.out, outer->in * axis.in, outer->before * axis.in, axis.stride};
    } else {
      axes[ndim++] = axis;
    }
  }
  if (ndim == 0) axes[ndim++] = {1, 1, 0, size};
}

std::int64_t PadPlan::rows() const {
  std::int64_t rows = 1;
  for (int i = 0; i < ndim - 1; ++i) rows *= axes[i].out;
  return rows;
}

}  // namespace rensa::operations

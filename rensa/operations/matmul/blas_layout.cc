// From the strides of three views to the dimensions of a product.
#include "rensa/operations/matmul/blas_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "rensa/core/error.h"

namespace rensa {

namespace {

struct Matrix {
  bool transposed;
  std::int64_t ld;
};

/// `view`'s last two axes; row-major where it could be both.
Matrix matrix_of(const char* role, const ArrayView& view, bool may_transpose) {
  int row = view.ndim() - 2, column = view.ndim() - 1;
  std::int64_t size = itemsize(view.dtype);
  auto leading_dimension = [&](int slow, int fast) -> std::int64_t {  // 0: not this way
    std::int64_t width = std::max<std::int64_t>(view.shape[fast], 1);
    if (view.strides[fast] != size && view.shape[fast] > 1) return 0;
    if (view.shape[slow] <= 1) return width;  // one row: its stride means nothing
    bool reaches = view.strides[slow] % size == 0 && view.strides[slow] >= size * width;
    return reaches ? view.strides[slow] / size : 0;
  };
  if (view.size() == 0) return {false, std::max<std::int64_t>(view.shape[column], 1)};
  if (std::int64_t ld = leading_dimension(row, column)) return {false, ld};
  if (may_transpose) {
    if (std::int64_t ld = leading_dimension(column, row)) return {true, ld};
  }
  throw NotImplementedError(
      fmt::format("matmul: operand {}, {} with strides {} (bytes), is not {}; make it contiguous",
                  role, view.describe(), view.strides.str(),
                  may_transpose ? "row-major or column-major" : "row-major"));
}

bool can_batch(const MatmulLayout::OuterAxis& axis, std::int64_t size) {
  return std::all_of(axis.strides, axis.strides + 3,
                     [&](std::int64_t stride) { return stride >= 0 && stride % size == 0; });
}

/// Leading axes, merged where they lie behind one another, innermost first, into layout.outer.
void collect_leading_axes(const ArrayView& a, const ArrayView& b, const ArrayView& c,
                          MatmulLayout& layout) {
  for (int axis = c.ndim() - 3; axis >= 0; --axis) {
    std::int64_t extent = c.shape[axis];
    if (extent == 1) continue;
    MatmulLayout::OuterAxis next{extent, {a.strides[axis], b.strides[axis], c.strides[axis]}};
    layout.outer_count *= extent;
    if (layout.num_outer > 0) {
      auto& last = layout.outer[layout.num_outer - 1];
      bool merges = true;
      for (int j = 0; j < 3; ++j) {
        merges = merges && next.strides[j] == last.strides[j] * last.extent;
      }
      if (merges) {
        last.extent *= extent;
        continue;
      }
    }
    layout.outer[layout.num_outer++] = next;
  }
}

/// Makes the longest of the outer axes the batch.
void choose_batch(std::int64_t size, MatmulLayout& layout) {
  int best = -1;
  for (int i = 0; i < layout.num_outer; ++i) {
    if (!can_batch(layout.outer[i], size)) continue;
    if (best < 0 || layout.outer[i].extent > layout.outer[best].extent) best = i;
  }
  if (best < 0 || layout.outer_count == 0) return;
  const auto& axis = layout.outer[best];
  layout.batch = axis.extent;
  layout.a_stride = axis.strides[0] / size;
  layout.b_stride = axis.strides[1] / size;
  layout.c_stride = axis.strides[2] / size;
  layout.outer_count /= axis.extent;
  std::move(layout.outer + best + 1, layout.outer + layout.num_outer, layout.outer + best);
  --layout.num_outer;
  if (layout.b_stride != 0 || layout.a_transposed) return;
  // One b for all: one taller product, where the rows of a and of c simply go on. Matrices of one
  // row lie as the rows of one matrix do.
  bool goes_on =
      layout.a_stride == layout.m * layout.a_ld && layout.c_stride == layout.m * layout.c_ld;
  if (layout.m == 1 && layout.a_stride >= layout.a_ld && layout.c_stride >= layout.c_ld) {
    layout.a_ld = layout.a_stride;
    layout.c_ld = layout.c_stride;
    goes_on = true;
  }
  if (!goes_on) return;
  layout.m *= layout.batch;
  layout.batch = 1;
  layout.a_stride = layout.c_stride = 0;
}

}  // namespace

bool is_matmul_result(const ArrayView& view) {
  if (view.size() == 0) return true;
  int last = view.ndim() - 1;
  std::int64_t size = itemsize(view.dtype);
  if (view.shape[last] > 1 && view.strides[last] != size) return false;
  if (view.shape[last - 1] > 1 &&
      (view.strides[last - 1] % size != 0 || view.strides[last - 1] < size * view.shape[last])) {
    return false;
  }
  // Each axis steps over all that the axes of smaller steps reach.
  Shape shape = view.shape, strides = view.strides;
  std::int64_t reach = size;
  for (int left = view.ndim(); left > 0; --left) {
    int best = -1;
    for (int i = 0; i < view.ndim(); ++i) {
      if (shape[i] <= 1) continue;
      if (best < 0 || std::abs(strides[i]) < std::abs(strides[best])) best = i;
    }
    if (best < 0) return true;
    if (std::abs(strides[best]) < reach) return false;
    reach += std::abs(strides[best]) * (shape[best] - 1);
    shape[best] = 1;
  }
  return true;
}

MatmulLayout matmul_layout(const ArrayView& a, const ArrayView& b, const ArrayView& c) {
  MatmulLayout layout;
  int last = c.ndim() - 1;
  layout.m = c.shape[last - 1];
  layout.n = c.shape[last];
  layout.k = a.shape[last];
  Matrix ma = matrix_of("a", a, true), mb = matrix_of("b", b, true), mc = matrix_of("c", c, false);
  layout.a_transposed = ma.transposed;
  layout.b_transposed = mb.transposed;
  layout.a_ld = ma.ld;
  layout.b_ld = mb.ld;
  layout.c_ld = mc.ld;
  collect_leading_axes(a, b, c, layout);
  choose_batch(itemsize(c.dtype), layout);
  return layout;
}

}  // namespace rensa

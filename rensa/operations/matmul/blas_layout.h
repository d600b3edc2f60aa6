// Products as the BLAS libraries see them: which views they take as they are, and the dimensions,
// leading dimensions and batches of a product of three views.
#pragma once

#include <cstdint>

#include "rensa/core/array_view.h"

namespace rensa {

/// Whether the last two axes of `view` (of at least two) form row-major or column-major matrices
/// whose rows (columns) do not overlap: one stride is the itemsize, the other reaches over it.
inline bool is_matmul_operand(const ArrayView& view) {
  auto is_matrix = [&](int row, int column) {
    std::int64_t size = itemsize(view.dtype);
    bool dense = view.strides[column] == size || view.shape[column] <= 1;
    return dense && view.strides[row] % size == 0 &&
           (view.strides[row] >= size * view.shape[column] || view.shape[row] <= 1);
  };
  int n = view.ndim();
  return is_matrix(n - 2, n - 1) || is_matrix(n - 1, n - 2);
}

/// Whether matmul_layout takes `view`, of at least two axes, as c, and its elements are
/// surely at places of their own: rows are contiguous, whatever lies between them and between
/// matrices.
bool is_matmul_result(const ArrayView& view);

/// c (m, n) = a (m, k) @ b (k, n) for `batch` triples of matrices, and that for each index of the
/// outer axes. Leading dimensions and batch strides count elements; c is row-major, a and b are
/// too unless `transposed` (stored column by column).
struct MatmulLayout {
  std::int64_t m = 0, n = 0, k = 0;
  bool a_transposed = false, b_transposed = false;
  std::int64_t a_ld = 1, b_ld = 1, c_ld = 1;
  std::int64_t batch = 1, a_stride = 0, b_stride = 0, c_stride = 0;

  /// Axes that do not fold into `batch`; strides in bytes, of a, b and c.
  struct OuterAxis {
    std::int64_t extent, strides[3];
  };
  int num_outer = 0;
  OuterAxis outer[kMaxNdim];
  std::int64_t outer_count = 1;

  /// Whether c has no elements.
  bool empty() const { return m == 0 || n == 0 || batch == 0 || outer_count == 0; }
  /// Byte offsets of a, b and c for the `index`-th of outer_count.
  void offsets(std::int64_t index, std::int64_t (&offset)[3]) const {
    offset[0] = offset[1] = offset[2] = 0;
    for (int i = 0; i < num_outer; ++i) {
      std::int64_t position = index % outer[i].extent;
      index /= outer[i].extent;
      for (int j = 0; j < 3; ++j) offset[j] += position * outer[i].strides[j];
    }
  }
};

/// The layout of c = a @ b; leading axes are equal in all three. Throws NotImplementedError, naming
/// the view, for an a or b that is no matmul operand or a c that is not row-major.
MatmulLayout matmul_layout(const ArrayView& a, const ArrayView& b, const ArrayView& c);

}  // namespace rensa

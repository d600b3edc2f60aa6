// Products of a sparse matrix and a dense one.
#pragma once

#include <cstdint>

#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

/// A sparse matrix, or a batch of them, by the places of its elements, in any order, of equal
/// places the sum: data (k,) or (n, k), row and col of the same shape. Elements with a row or
/// column of -1 are none: what fills up the shorter ones of a batch.
struct CooMatrix {
  /// Throws ShapeError, DtypeError where row and col are no integers, DeviceError.
  CooMatrix(Variable data, Array row, Array col, std::int64_t rows, std::int64_t columns);
  /// (rows, columns), or (n, rows, columns).
  [[nodiscard]] Variable to_dense() const;

  Variable data;
  Array row, col;
  std::int64_t rows, columns;  // of the matrix
};

/// The elements of x (rows, columns) or (n, rows, columns) that are not 0, in C order; `ldnz` or
/// more of them, the rest filled up. Their data are a leaf. Waits for the device.
[[nodiscard]] CooMatrix to_coo(const Array& x, std::int64_t ldnz = 0, bool requires_grad = false);

/// a @ b of a sparse matrix and a dense one, or the other way round, of which `transa` and `transb`
/// transpose each, and of as many sparse as dense ones, (n, ...). Sums are in the order of the
/// elements. Gradients, of any order, are of the dense one and of the sparse one's data. A row or
/// column beyond the matrix throws IndexError, on a GPU at the next wait. Throws ShapeError,
/// DtypeError, DeviceError.
[[nodiscard]] Variable sparse_matmul(const CooMatrix& a, const Variable& b, bool transa = false,
                                     bool transb = false);
[[nodiscard]] Variable sparse_matmul(const Variable& a, const CooMatrix& b, bool transa = false,
                                     bool transb = false);

}  // namespace functions

namespace F = functions;

}  // namespace rensa

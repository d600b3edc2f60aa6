// Products of two matrices in the project's own code, over any strides: what the CPU backend uses
// where no BLAS serves, and where it is the faster of the two.
#pragma once

#include <cstdint>

#include "rensa/backend/cpu/instruction_sets.h"
#include "rensa/core/dtype.h"
#include "rensa/core/ufunc_info.h"

namespace rensa::host {

/// The kernels of one instruction set over one value type.
template <class V> struct GemmKernels {
  static constexpr int kMaxRows = 14;
  /// c (rows, vectors) = p (rows, k) @ q (k, vectors), added to what is there where `add`. Element
  /// (i, j) of p lies at i * row_stride + j * step; the rows of q and c are contiguous and lie
  /// q_stride and c_stride apart. All in elements; rows - 1 and vectors - 1 are the table's
  /// indices. For each of the k steps a line is fetched from `ahead`, which moves on by ahead_step
  /// bytes.
  using Tile = void (*)(std::int64_t k, const V* p, std::int64_t row_stride, std::int64_t step,
                        const V* q, std::int64_t q_stride, V* c, std::int64_t c_stride, bool add,
                        const char* ahead, std::int64_t ahead_step);
  /// As a tile of one row and kRowVectors vectors, whose steps fetch ahead what they read of q.
  using Row = void (*)(std::int64_t k, const V* p, std::int64_t step, const V* q,
                       std::int64_t q_stride, V* c, bool add);
  static constexpr int kRowVectors = 8;
  /// results (kDotRows, kDotColumns) = rows of p times columns of q, of which there may be fewer;
  /// row i of p lies at i * row_stride, column j of q at j * column_stride, both contiguous.
  using Dots = void (*)(std::int64_t k, const V* p, std::int64_t row_stride, int rows, const V* q,
                        std::int64_t column_stride, int columns, V* results);
  static constexpr int kDotRows = 6, kDotColumns = 4;
  int rows = 0;   // most rows of a tile
  int lanes = 0;  // values of a vector
  Tile tile[kMaxRows][2] = {};
  Row row = nullptr;
  Dots dots = nullptr;
};

/// A matrix by its strides, in bytes.
struct Matrix {
  char* data;
  std::int64_t row_stride, column_stride;
};

/// c (m, n) = a (m, k) @ b (k, n), all of `dtype`; k > 0. Uses the threads of the pool; each
/// element of c is summed in an order that does not depend on their number.
void gemm(Dtype dtype, std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a,
          const Matrix& b, const Matrix& c);

/// Whether gemm() of float32 and float64 has kernels that keep up with a BLAS on this machine.
bool gemm_is_fast();

RENSA_EACH_SET(void get_gemm_kernels(GemmKernels<float>&, GemmKernels<double>&);)

}  // namespace rensa::host

// Operations on the triangles of matrices.
#pragma once

#include "rensa/device/kind.h"

namespace rensa::operations {

/// out = in where column - row <= k (`lower`) or >= k, else 0, for the last two axes. One shape of
/// at least two axes and one dtype; out is C-contiguous.
struct Triangle final : KindOf<Triangle> {
  explicit Triangle(const char* name) : KindOf(name) {}
  bool lower = true;
  std::int64_t k = 0;
  Operand in, out;

  template <class V> void fields(V& v) { v.read(in), v.write(out), v.number(lower, k); }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

/// The indices, in C order, of the elements that Triangle keeps of a matrix with as many rows and
/// columns: `row_indices` and `column_indices` are int64, one-dimensional and C-contiguous.
struct TriangleIndices final : KindOf<TriangleIndices> {
  explicit TriangleIndices(const char* name) : KindOf(name) {}
  bool lower = true;
  std::int64_t k = 0, rows = 0, columns = 0;
  Operand row_indices, column_indices;

  template <class V> void fields(V& v) {
    v.write(row_indices, column_indices), v.number(lower, k, rows, columns);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa::operations

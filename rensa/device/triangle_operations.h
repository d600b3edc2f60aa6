// Operations on the triangles of matrices.
#pragma once

#include "rensa/device/operation.h"

namespace rensa {

/// out = in where column - row <= k (`lower`) or >= k, else 0, for the last two axes. One shape of
/// at least two axes and one dtype; out is C-contiguous.
struct Triangle final : OperationOf<Triangle> {
  explicit Triangle(const char* name) : OperationOf(name) {}
  bool lower = true;
  std::int64_t k = 0;
  Operand in, out;

  void visit(OperandVisitor& v) override;
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

/// The indices, in C order, of the elements that Triangle keeps of a matrix with as many rows and
/// columns: `row_indices` and `column_indices` are int64, one-dimensional and C-contiguous.
struct TriangleIndices final : OperationOf<TriangleIndices> {
  explicit TriangleIndices(const char* name) : OperationOf(name) {}
  bool lower = true;
  std::int64_t k = 0, rows = 0, columns = 0;
  Operand row_indices, column_indices;

  void visit(OperandVisitor& v) override;
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa

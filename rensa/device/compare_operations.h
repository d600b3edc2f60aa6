// Comparisons of arrays with a tolerance, in one pass.
#pragma once

#include "rensa/core/closeness.h"
#include "rensa/device/operation.h"

namespace rensa {

/// out[i] = whether a[i] and b[i] are close. a and b have out's shape (stride 0 where broadcast)
/// and any real dtype; out is a C-contiguous bool array.
struct IsClose final : OperationOf<IsClose> {
  explicit IsClose(const char* name = "isclose") : OperationOf(name) {}
  Closeness closeness;
  Operand a, b, out;

  void visit(OperandVisitor& v) override;
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

/// out = whether all elements of a and b are close, or with `bits`, equal bit by bit. a and b are
/// C-contiguous, of one size and one dtype, a real floating one but for `bits`; out is one bool.
struct AllClose final : OperationOf<AllClose> {
  explicit AllClose(const char* name) : OperationOf(name) {}
  Closeness closeness;
  bool bits = false;
  Operand a, b, out;

  void visit(OperandVisitor& v) override;
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

}  // namespace rensa

// Softmax over rows as an operation.
#pragma once

#include "rensa/device/operation.h"

namespace rensa {

/// out = exp(in - max) / sum(exp(in - max)) by row, or its logarithm with `log`. in and out are
/// (rows, columns), C-contiguous and of one floating dtype; they may be the same.
struct Softmax final : OperationOf<Softmax> {
  explicit Softmax(bool logarithm)
      : OperationOf(logarithm ? "log_softmax" : "softmax"), log(logarithm) {}
  bool log;
  Operand in, out;

  void visit(OperandVisitor& v) override;
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa

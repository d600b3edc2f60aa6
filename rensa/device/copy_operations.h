// Copies of several arrays at once.
#pragma once

#include <vector>

#include "rensa/device/operation.h"

namespace rensa {

/// out = in for every pair, each of one shape and one dtype. No `in` may share memory with any
/// `out`. On a GPU small pairs go in few launches: what concatenate, roll and insert are made of.
struct CopyParts final : OperationOf<CopyParts> {
  struct Part {
    Operand in, out;
  };
  explicit CopyParts(const char* name) : OperationOf(name) {}
  std::vector<Part> parts;

  void visit(OperandVisitor& v) override;
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa

// Softmax over rows as an operation.
#pragma once

#include "rensa/device/kind.h"

namespace rensa::operations {

/// out = exp(in - max) / sum(exp(in - max)) by row, or its logarithm with `log`. in and out are
/// (rows, columns), C-contiguous and of one floating dtype; they may be the same.
struct Softmax final : KindOf<Softmax> {
  explicit Softmax(bool logarithm)
      : KindOf(logarithm ? "log_softmax" : "softmax"), log(logarithm) {}
  bool log;
  Operand in, out;

  template <class V> void fields(V& v) { v.read(in), v.write(out), v.number(log); }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa::operations

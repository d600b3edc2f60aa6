// The gradient of softmax over rows in one pass.
#pragma once

#include "rensa/device/kind.h"

namespace rensa::operations {

/// gx = y * (gy - sum(gy * y)) by row, y being the softmax; with `log`, y its logarithm,
/// gx = gy - exp(y) * sum(gy). All are (rows, columns), C-contiguous and of one floating dtype; gx
/// may be gy.
struct SoftmaxGrad final : KindOf<SoftmaxGrad> {
  explicit SoftmaxGrad(bool logarithm)
      : KindOf(logarithm ? "log_softmax_grad" : "softmax_grad"), log(logarithm) {}
  bool log;
  Operand y, gy, gx;

  template <class V> void fields(V& v) { v.read(y, gy), v.write(gx), v.number(log); }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa::operations

// The gradients of relu and of the bias before it in one pass.
#pragma once

#include "rensa/device/kind.h"

namespace rensa::operations {

/// gz = where(y > 0, gy, 0) and gb = sum of gz over axis 0, in one pass; y, gy, gz are (n, m)
/// C-contiguous, gb (m,). gz may be gy. What capture makes of relu's and a bias's gradients, of
/// convolutions with all places of all samples as rows; gb is bit-equal to Reduce's sum over axis
/// 0.
struct ReluBiasGrad final : KindOf<ReluBiasGrad> {
  ReluBiasGrad() : KindOf("relu_bias_grad") {}
  Operand gy, y, gz, gb;

  template <class V> void fields(V& v) { v.read(gy, y), v.write(gz, gb); }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

}  // namespace rensa::operations

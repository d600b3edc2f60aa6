// Products of matrices.
#pragma once

#include "rensa/device/kind.h"

namespace rensa::operations {

/// c = alpha * a @ b (+ bias) (then relu). a is (..., m, k), b (..., k, n), c (..., m, n), one
/// dtype, equal leading axes (stride 0 where broadcast); bias is (n,). The last two axes of a and b
/// may be transposed views.
struct Matmul final : KindOf<Matmul> {
  Matmul() : KindOf("matmul") {}
  explicit Matmul(const char* name) : KindOf(name) {}
  double alpha = 1;
  bool relu = false;
  bool tf32 = false;  // taken from Config when the operation is made
  bool autotune = false;
  Operand a, b, bias, c;

  template <class V> void fields(V& v) {
    v.read(a, b, bias), v.write(c), v.number(alpha, relu, tf32);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

}  // namespace rensa::operations

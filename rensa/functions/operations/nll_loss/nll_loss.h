// The mean negative log-likelihood and its gradient.
#pragma once

#include "rensa/device/kind.h"

namespace rensa::operations {

/// loss = -sum(x[i, t[i]] over t[i] != ignore_label) / count of x (n, classes) and integer labels
/// t (n,), both C-contiguous; count = the rows counted. loss and count are 0-d, loss of x's dtype,
/// count of the one that x's computes in, float32 or float64. Where no row counts, loss is NaN. A
/// label outside [0, classes) that is not `ignore_label` throws IndexError (on the GPU at the next
/// wait).
struct NllLoss final : KindOf<NllLoss> {
  NllLoss() : KindOf("nll_loss") {}
  long long ignore_label = -1;
  Operand x, t, loss, count;

  template <class V> void fields(V& v) {
    v.read(x, t), v.write(loss, count), v.number(ignore_label);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

/// gx[i, j] = -gy / count at j == t[i] of rows counted, 0 elsewhere; gy is 0-d, gx (n, classes) is
/// C-contiguous and not empty.
struct NllLossGrad final : KindOf<NllLossGrad> {
  NllLossGrad() : KindOf("nll_loss_grad") {}
  long long ignore_label = -1;
  Operand t, count, gy, gx;

  template <class V> void fields(V& v) {
    v.read(t, count, gy), v.write(gx), v.number(ignore_label);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa::operations

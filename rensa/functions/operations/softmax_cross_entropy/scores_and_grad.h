// A product that gives the scores of classes, softmax cross entropy's gradient of them, and that of
// the product's left operand, in one pass.
#pragma once

#include "rensa/device/kind.h"
#include "rensa/functions/operations/softmax_cross_entropy/softmax_cross_entropy.h"
#include "rensa/operations/matmul/matmul.h"

namespace rensa::operations {

/// The operations one after the other, bit for bit. grad.x is the product's c, and there is neither
/// shift nor count. `back`, which there need not be, is alpha times grad.gx times the product's b,
/// transposed, perhaps with the product's a as its gate. A GPU has one kernel for them where the
/// product has_rows() and back adds_in_order(). What capture makes of them then: what waits for the
/// gradients waits for one or two kernels less.
struct ScoresAndGrad final : KindOf<ScoresAndGrad> {
  ScoresAndGrad(const Matmul& scores, const SoftmaxCrossEntropyGrad& of_scores)
      : KindOf("scores_and_grad"), product(scores), grad(of_scores) {}
  Matmul product;
  SoftmaxCrossEntropyGrad grad;
  Matmul back;

  bool has_back() const { return back.c.present(); }
  /// What `back` multiplies by.
  Operand transposed_b() const;
  template <class V> void fields(V& v) {
    product.fields(v);
    v.read(grad.t, grad.gy, back.gate), v.write(grad.gx, back.c);
    v.number(grad.normalize, grad.ignore_label, back.alpha, back.tf32, back.tf32.is_x3(),
             back.gate_follows);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;

 private:
  /// Has each operation find what those before it write.
  void connect();
};

}  // namespace rensa::operations

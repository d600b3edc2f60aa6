// What the operations of ScoresAndGrad have from each other.
#include "rensa/functions/operations/softmax_cross_entropy/scores_and_grad.h"

#include <utility>

namespace rensa::operations {

Operand ScoresAndGrad::transposed_b() const {
  Operand b = product.b;
  std::swap(b.view.shape[0], b.view.shape[1]);
  std::swap(b.view.strides[0], b.view.strides[1]);
  return b;
}

void ScoresAndGrad::connect() {
  grad.x = product.c;
  if (!has_back()) return;
  back.a = grad.gx;
  back.b = transposed_b();
  if (back.gate.present()) back.gate = product.a;
}

void ScoresAndGrad::run_cpu() {
  connect();
  product.run_cpu();
  grad.run_cpu();
  if (has_back()) back.run_cpu();
}

}  // namespace rensa::operations

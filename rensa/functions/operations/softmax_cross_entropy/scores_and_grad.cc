// What the operations of ScoresAndGrad have from each other.
#include "rensa/functions/operations/softmax_cross_entropy/scores_and_grad.h"

#include <algorithm>
#include <utility>

namespace rensa::operations {

void ScoresAndGrad::connect() {
  grad.x = product.c;
  if (!has_back()) return;
  back.a = grad.gx;
  back.b = product.b;
  std::swap(back.b.view.shape[0], back.b.view.shape[1]);
  std::swap(back.b.view.strides[0], back.b.view.strides[1]);
  if (back.gate.present()) back.gate = product.a;
}

void ScoresAndGrad::run_cpu() {
  connect();
  product.run_cpu();
  grad.run_cpu();
  if (has_back()) back.run_cpu();
}

std::size_t ScoresAndGrad::workspace_bytes() const {
  return std::max(product.workspace_bytes(), has_back() ? back.workspace_bytes() : 0);
}

}  // namespace rensa::operations

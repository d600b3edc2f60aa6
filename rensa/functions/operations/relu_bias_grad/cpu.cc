// The gradients of relu and bias on the CPU: one after the other.
#include "rensa/functions/operations/relu_bias_grad/relu_bias_grad.h"
#include "rensa/operations/elementwise/cpu_elementwise.h"
#include "rensa/operations/reduce/cpu_reduce.h"

namespace rensa::operations {

void ReluBiasGrad::run_cpu() {
  host::Input inputs[] = {gy.view, y.view};
  host::run_elementwise(ufunc::relu_grad, gz.view.dtype, inputs, 2, gz.view);
  ArrayView sums = gb.view;
  sums.shape.insert(0, 1);
  sums.strides.insert(0, 0);
  host::run_reduce(reduction::sum, 1u << 0, gz.view.dtype, gz.view, sums);
}

}  // namespace rensa::operations

// The bias of a convolution as a pass of its own.
#include "rensa/functions/operations/convolution/convolution.h"

namespace rensa::operations {

Elementwise bias_addition(const Convolution& op) {
  const Operand& made = op.direction == ConvolutionDirection::forward ? op.y : op.x;
  Elementwise add(op.name(), ufunc::add);
  add.compute = made.view.dtype;
  add.num_inputs = 2;
  add.out = add.in[0].array = made;
  ArrayView& row = (add.in[1].array = op.bias).view;
  std::int64_t stride = row.strides[0];
  row.shape = made.view.shape;
  row.strides = Shape::filled(row.ndim(), 0);
  row.strides[1] = stride;
  return add;
}

}  // namespace rensa::operations

#include "rensa/device/softmax_operations.h"

namespace rensa {

void Softmax::visit(OperandVisitor& v) {
  v.read(in);
  v.write(out);
}

}  // namespace rensa

#include "rensa/device/compare_operations.h"

namespace rensa {

void IsClose::visit(OperandVisitor& v) {
  v.read(a);
  v.read(b);
  v.write(out);
}

void AllClose::visit(OperandVisitor& v) {
  v.read(a);
  v.read(b);
  v.write(out);
}

}  // namespace rensa

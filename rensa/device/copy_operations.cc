#include "rensa/device/copy_operations.h"

namespace rensa {

void CopyParts::visit(OperandVisitor& v) {
  for (Part& part : parts) v.read(part.in);
  for (Part& part : parts) v.write(part.out);
}

}  // namespace rensa

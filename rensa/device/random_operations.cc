#include "rensa/device/random_operations.h"

namespace rensa {

void Variates::visit(OperandVisitor& v) {
  for (ElementwiseInput& parameter : parameters) {
    if (parameter.array.present()) v.read(parameter.array);
  }
  if (table.present()) v.read(table);
  v.write(out);
  v.scalar(seed);
  v.scalar(offset);
}

}  // namespace rensa

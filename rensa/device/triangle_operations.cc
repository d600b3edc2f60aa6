#include "rensa/device/triangle_operations.h"

namespace rensa {

void Triangle::visit(OperandVisitor& v) {
  v.read(in);
  v.write(out);
}

void TriangleIndices::visit(OperandVisitor& v) {
  v.write(row_indices);
  v.write(column_indices);
}

}  // namespace rensa

#include "rensa/device/signal_operations.h"

namespace rensa {

void Correlate::visit(OperandVisitor& v) {
  v.read(in);
  v.read(taps);
  v.write(out);
}

void Interpolate::visit(OperandVisitor& v) {
  v.read(x);
  v.read(points);
  v.read(values);
  v.write(out);
}

}  // namespace rensa

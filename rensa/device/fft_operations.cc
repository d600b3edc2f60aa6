// The operands of a Fourier transform.
#include "rensa/device/fft_operations.h"

namespace rensa {

void Fft::visit(OperandVisitor& v) {
  if (kind == FftKind::complex_to_real) v.write(in);
  else v.read(in);
  v.write(out);
}

}  // namespace rensa

// The randomized leaky rectifier.
#pragma once

#include "rensa/device/kind.h"

namespace rensa::operations {

/// r[i] = low + (high - low) * uniform_float(word i), in float and then rounded to r's dtype, as
/// Random's uniform numbers are; out[i] = in[i] where it is not negative, else r[i] * in[i]. All
/// are C-contiguous and of one floating dtype.
struct RandomSlopes final : KindOf<RandomSlopes> {
  RandomSlopes() : KindOf("rrelu") {}
  double low = 0, high = 1;
  HostScalar seed, offset;
  Operand in, r, out;

  template <class V> void fields(V& v) {
    v.read(in), v.write(r, out), v.scalar(seed, offset), v.number(low, high);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa::operations

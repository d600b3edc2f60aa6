// Dropout.
#pragma once

#include "rensa/device/kind.h"

namespace rensa::operations {

/// out[i] = in[i] / (1 - ratio) where uniform_float(word i) >= ratio, else 0: the same mask for the
/// same seed and offset. in and out are C-contiguous and of one dtype.
struct Dropout final : KindOf<Dropout> {
  Dropout() : KindOf("dropout") {}
  double ratio = 0.5;
  HostScalar seed, offset;
  Operand in, out;

  template <class V> void fields(V& v) {
    v.read(in), v.write(out), v.scalar(seed, offset), v.number(ratio);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa::operations

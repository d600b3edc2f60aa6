// Numbers with equal steps.
#pragma once

#include "rensa/core/scalar.h"
#include "rensa/device/kind.h"

namespace rensa::operations {

/// out[i] = start + i * step, out one-dimensional.
struct Arange final : KindOf<Arange> {
  Arange() : KindOf("arange") {}
  Scalar start, step;
  Operand out;

  template <class V> void fields(V& v) { v.write(out), v.number(start, step); }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa::operations

// Linear recurrences.
#pragma once

#include "rensa/device/kind.h"

namespace rensa::operations {

/// out[i] = in[i] + factor[i + 1] * out[i + 1] along the last axis, from its end: what gradients of
/// running products are. The three are C-contiguous (rows, n) of float32 or float64. Results are
/// the same bits in each run.
struct Recurrence final : KindOf<Recurrence> {
  explicit Recurrence(const char* name) : KindOf(name) {}
  Operand in, factor, out;

  template <class V> void fields(V& v) { v.read(in, factor), v.write(out); }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa::operations

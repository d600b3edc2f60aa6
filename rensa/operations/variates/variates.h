// The operation that draws from the distributions of core/distributions.def.
#pragma once

#include "rensa/core/distributions.h"
#include "rensa/device/kind.h"
#include "rensa/operations/elementwise/elementwise.h"

namespace rensa::operations {

/// out[i] = a variate of `distribution` from Philox counter offset + i, computed in double and
/// narrowed to out's dtype (integers: towards zero). out is C-contiguous; the parameters are
/// numbers or arrays of any real dtype, broadcast to out's shape (stride 0). `table` (float64,
/// C-contiguous, cumulated, ending in 1) belongs to `categorical`.
struct Variates final : KindOf<Variates> {
  Variates(const char* name, Distribution d) : KindOf(name), distribution(d) {}
  Distribution distribution;
  ElementwiseInput parameters[3];
  Operand table, out;
  HostScalar seed, offset;  // integers

  template <class V> void fields(V& v) {
    for (ElementwiseInput& parameter : parameters) {
      v.read(parameter.array), v.number(parameter.scalar);
    }
    v.read(table), v.write(out), v.scalar(seed, offset), v.number(distribution);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa::operations

// Reductions over axes.
#pragma once

#include "rensa/core/reductions.h"
#include "rensa/device/kind.h"

namespace rensa::operations {

/// out = reduction of `in` over the axes whose bit in `axes` is set; out has those axes with extent
/// 1 (keepdims), all others as in `in`. Sums of float16, bfloat16 and float32 are carried in float
/// (pairwise on the CPU). argmax and argmin give int64 positions along the one reduced axis, the
/// first of equals, and NaN counts as the greatest (least).
struct Reduce final : KindOf<Reduce> {
  Reduce(const char* name, Reduction r) : KindOf(name), reduction(r) {}
  Reduction reduction;
  unsigned axes = 0;
  Dtype compute = Dtype::float32;
  Operand in, out;

  template <class V> void fields(V& v) {
    v.read(in), v.write(out), v.number(reduction.number(), axes, compute);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

}  // namespace rensa::operations

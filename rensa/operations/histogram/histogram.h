// Histograms. The arrays are C-contiguous.
#pragma once

#include "rensa/device/kind.h"

namespace rensa::operations {

/// counts[k] = the number of elements of `in` that fall into bin k, or the sum of their weights.
/// Without `edges` an element of the integer array `in` is its bin; with them (float64, rising, one
/// more than counts) bin k holds edges[k] <= x < edges[k + 1], the last bin its right edge too;
/// `uniform`: they are evenly spaced. What falls into no bin is left out. counts is int64 without
/// `weights`, else of the dtype of weights, float64 or complex128. On the GPU the order in which
/// weights are added is not fixed.
struct Histogram final : KindOf<Histogram> {
  using KindOf::KindOf;
  bool uniform = false;
  Operand in, edges, weights, counts;

  template <class V> void fields(V& v) {
    v.read(in, edges, weights), v.write(counts), v.number(uniform);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa::operations

// Running sums and products. The arrays are C-contiguous.
#pragma once

#include "rensa/device/kind.h"

namespace rensa::operations {

/// Running sums (or products) of `in` (outer, n, inner) along its middle axis. in and out have one
/// dtype: int64, uint64, float32, float64, complex64 or complex128. May run in place. Results
/// are the same bits in each run.
struct Scan final : KindOf<Scan> {
  Scan(const char* name, bool multiply) : KindOf(name), product(multiply) {}
  bool product;
  Operand in, out;

  template <class V> void fields(V& v) { v.read(in), v.write(out), v.number(product); }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

}  // namespace rensa::operations

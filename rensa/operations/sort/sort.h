// Sorting. The arrays are C-contiguous.
#pragma once

#include "rensa/device/kind.h"

namespace rensa::operations {

/// Sorts the rows of `in` (rows, n) of any dtype, NaN last, complex numbers by real part, then by
/// imaginary part. `values` gets the elements in order, `order` (int64) the places in their row
/// that they come from, equal ones in the order they had; either may be absent. `descending` turns
/// the order of unequal elements round (NaN first). With `kth` in [0, n) only that place has to
/// hold what it holds in the sorted row, with nothing greater before and nothing less behind it.
struct Sort final : KindOf<Sort> {
  using KindOf::KindOf;
  bool descending = false;
  long long kth = -1;
  Operand in, values, order;

  template <class V> void fields(V& v) {
    v.read(in), v.write(values, order), v.number(descending, kth);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

}  // namespace rensa::operations

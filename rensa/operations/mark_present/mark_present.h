// Which of some integers there are. The arrays are C-contiguous.
#pragma once

#include "rensa/device/kind.h"

namespace rensa::operations {

/// flags[k] = whether the array `in`, of integers in [low, low + flags' size), holds low + k; flags
/// is bool. (Differences are taken modulo 2^64, so `low` may stand for a uint64.)
struct MarkPresent final : KindOf<MarkPresent> {
  using KindOf::KindOf;
  long long low = 0;
  Operand in, flags;

  template <class V> void fields(V& v) { v.read(in), v.write(flags), v.number(low); }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa::operations

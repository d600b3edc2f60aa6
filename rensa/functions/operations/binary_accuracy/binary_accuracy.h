// Chainer's binary_accuracy.
#pragma once

#include "rensa/device/kind.h"

namespace rensa::operations {

/// The share of scores y, of a floating dtype, that are 0 or greater where the label t is 1 and are
/// not where it is 0; labels of -1 are left out, others are never met. y and t, of int32 or int64,
/// are C-contiguous, of one size and not empty. `accuracy` is 0-d of y's dtype, 0 where no label
/// counts.
struct BinaryAccuracy final : KindOf<BinaryAccuracy> {
  BinaryAccuracy() : KindOf("binary_accuracy") {}
  Operand y, t, accuracy;

  template <class V> void fields(V& v) { v.read(y, t), v.write(accuracy); }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

}  // namespace rensa::operations

// Chainer's accuracy.
#pragma once

#include "rensa/device/kind.h"

namespace rensa::operations {

/// Chainer's accuracy: the share of rows of y (n, classes) whose greatest element stands at t[i],
/// rows with `ignore_label` (where has_ignore_label) left out. `accuracy` is 0-d of y's dtype.
struct Accuracy final : KindOf<Accuracy> {
  Accuracy() : KindOf("accuracy") {}
  bool has_ignore_label = false;
  long long ignore_label = 0;
  Operand y, t, accuracy;

  template <class V> void fields(V& v) {
    v.read(y, t), v.write(accuracy), v.number(has_ignore_label, ignore_label);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

}  // namespace rensa::operations

// L::DecorrelatedBatchNormalization.
#pragma once

#include <cstdint>

#include "rensa/links/link.h"

namespace rensa {
namespace links {

struct DecorrelatedNormalizationOptions {
  rensa::detail::NamedOptions named = {};
  std::int64_t groups = 16;
  double decay = 0.9, eps = 2e-5;  // how much of an average stays at each call; added to variances
};

/// F::decorrelated_batch_normalization while config().train is on, which moves avg_mean (groups,
/// size / groups) and avg_projection (groups, size / groups, size / groups) towards the batch's;
/// else F::fixed_decorrelated_batch_normalization by these. With `finetune` they become the means
/// since start_finetuning().
class DecorrelatedBatchNormalization : public Chain<DecorrelatedBatchNormalization> {
 public:
  /// Throws ValueError for groups that do not divide the size.
  explicit DecorrelatedBatchNormalization(std::int64_t size,
                                          const DecorrelatedNormalizationOptions& options = {});
  void members(Visitor& v) override {
    v("avg_mean", avg_mean), v("avg_projection", avg_projection), v("N", N);
  }

  Variable operator()(const Variable& x, bool finetune = false) const;
  void start_finetuning() { N = 0; }

  // Calls write to them.
  mutable Persistent avg_mean, avg_projection;
  mutable Counter N;  // batches since start_finetuning()

 private:
  DecorrelatedNormalizationOptions options_;
};

}  // namespace links

namespace L = links;

}  // namespace rensa

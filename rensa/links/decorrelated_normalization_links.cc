// L::DecorrelatedBatchNormalization.
#include "rensa/links/decorrelated_normalization_links.h"

#include <fmt/format.h>

#include "rensa/array/creation.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/decorrelated_normalization.h"

namespace rensa::links {

DecorrelatedBatchNormalization::DecorrelatedBatchNormalization(
    std::int64_t size, const DecorrelatedNormalizationOptions& options)
    : options_(options) {
  if (size < 0 || options.groups < 1 || size % options.groups != 0) {
    throw ValueError(
        fmt::format("DecorrelatedBatchNormalization: {} groups, which have to divide a size of {}",
                    options.groups, size));
  }
  std::int64_t groups = options.groups, each = size / groups;
  Dtype dtype = config().dtype;
  avg_mean = Persistent(xp::zeros({groups, each}, dtype));
  avg_projection = Persistent(xp::zeros({groups, each, each}, dtype) + xp::eye(each, dtype));
}

Variable DecorrelatedBatchNormalization::operator()(const Variable& x, bool finetune) const {
  const Array &mean = avg_mean, &projection = avg_projection;
  if (!config().train) {
    return F::fixed_decorrelated_batch_normalization(x, constant(mean), constant(projection),
                                                     options_.groups);
  }
  double decay = options_.decay;
  if (finetune) {
    ++N;
    decay = 1 - 1 / static_cast<double>(N.value());
  }
  return F::decorrelated_batch_normalization(x, {.groups = options_.groups,
                                                 .eps = options_.eps,
                                                 .running_mean = mean,
                                                 .running_projection = projection,
                                                 .decay = decay});
}

}  // namespace rensa::links

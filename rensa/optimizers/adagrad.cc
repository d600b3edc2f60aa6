// AdaGrad and AdaDelta: rows adagrad and adadelta of core/update_rules.def.
#include "rensa/optimizers/adagrad.h"

#include "rensa/core/update_rule_ids.h"

namespace rensa::optimizers {

AdaGrad::AdaGrad(const AdaGradOptions& options)
    : Optimizer("AdaGrad", UpdateRuleId::adagrad, options) {}

AdaDelta::AdaDelta(const AdaDeltaOptions& options)
    : Optimizer("AdaDelta", UpdateRuleId::adadelta, options,
                [](const AdaDeltaOptions& o, std::int64_t) {
                  return std::vector<double>{o.rho, 1 - o.rho, o.eps};
                }) {}

}  // namespace rensa::optimizers

// Rows rmsprop, rmsprop_graves and smorms3 of core/update_rules.def.
#include "rensa/optimizers/rmsprop.h"

#include "rensa/core/update_rule_ids.h"

namespace rensa::optimizers {

RMSprop::RMSprop(const RMSpropOptions& options)
    : Optimizer("RMSprop", UpdateRuleId::rmsprop, options,
                [](const RMSpropOptions& o, std::int64_t) {
                  bool inside = o.eps_inside_sqrt;
                  return std::vector<double>{o.lr, o.alpha, 1 - o.alpha, inside ? 0 : o.eps,
                                             inside ? o.eps : 0};
                }) {}

RMSpropGraves::RMSpropGraves(const RMSpropGravesOptions& options)
    : Optimizer("RMSpropGraves", UpdateRuleId::rmsprop_graves, options,
                [](const RMSpropGravesOptions& o, std::int64_t) {
                  return std::vector<double>{o.lr, o.alpha, 1 - o.alpha, o.momentum, o.eps};
                }) {}

SMORMS3::SMORMS3(const SMORMS3Options& options)
    : Optimizer("SMORMS3", UpdateRuleId::smorms3, options) {}

}  // namespace rensa::optimizers

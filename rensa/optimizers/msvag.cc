// Row msvag of core/update_rules.def.
#include "rensa/optimizers/msvag.h"

#include <algorithm>
#include <cmath>

#include "rensa/core/update_rule_ids.h"

namespace rensa::optimizers {

MSVAG::MSVAG(const MSVAGOptions& options)
    : Optimizer("MSVAG", UpdateRuleId::msvag, options, [](const MSVAGOptions& o, std::int64_t t) {
        double power = std::pow(o.beta, static_cast<double>(t));
        double rho = (1 - o.beta) * (1 - o.beta) * (1 - power * power) /
                     ((1 - power) * (1 - power) * (1 - o.beta * o.beta));
        rho = std::min(rho, 0.9999);
        return std::vector<double>{o.lr, 1 - o.beta, 1 - power, o.eta, o.weight_decay_rate,
                                   rho,  1 - rho};
      }) {}

}  // namespace rensa::optimizers

// SGD and its kin as rows of core/update_rules.def.
#include "rensa/optimizers/sgd.h"

#include "rensa/core/update_rule_ids.h"

namespace rensa::optimizers {

SGD::SGD(const SGDOptions& options) : Optimizer("SGD", UpdateRuleId::sgd, options) {}

MomentumSGD::MomentumSGD(const MomentumSGDOptions& options)
    : Optimizer("MomentumSGD", UpdateRuleId::momentum_sgd, options) {}

CorrectedMomentumSGD::CorrectedMomentumSGD(const MomentumSGDOptions& options)
    : Optimizer("CorrectedMomentumSGD", UpdateRuleId::corrected_momentum_sgd, options) {}

NesterovAG::NesterovAG(const MomentumSGDOptions& options)
    : Optimizer("NesterovAG", UpdateRuleId::nesterov_ag, options) {}

}  // namespace rensa::optimizers

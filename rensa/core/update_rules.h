// The optimizer update rules as values, from update_rules.def.
#pragma once

namespace rensa {

/// Most hyperparameters and state arrays of one rule.
inline constexpr int kMaxHyperparameters = 8;
inline constexpr int kMaxStates = 2;

enum class UpdateRuleId : unsigned char {
#define RENSA_UPDATE_RULE(name, states, ...) name,
#include "rensa/core/update_rules.def"
#undef RENSA_UPDATE_RULE
};

}  // namespace rensa

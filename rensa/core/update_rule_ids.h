// The names of the update rules, from update_rules.def.
#pragma once

#include "rensa/core/update_rules.h"

namespace rensa {

enum class UpdateRuleId : unsigned char {
#define RENSA_UPDATE_RULE(name, ...) name,
#include "rensa/core/update_rules.def"
#undef RENSA_UPDATE_RULE
};

}  // namespace rensa

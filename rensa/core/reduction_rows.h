// The rows of core/reductions.def by their names, for the files that a new row compiles again.
#pragma once

#include "rensa/core/reductions.h"

namespace rensa::reduction {
#define RENSA_REDUCTION(name, ...) extern const ReductionInfo name;
#include "rensa/core/reductions.def"
#undef RENSA_REDUCTION
}  // namespace rensa::reduction

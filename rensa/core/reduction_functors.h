// The functors of all rows of reductions.def: red::sum and so on.
#pragma once

#include "rensa/core/begin_reduction_functors.h"

namespace rensa::red {
#include "rensa/core/reductions.def"
}  // namespace rensa::red

#include "rensa/core/end_reduction_functors.h"

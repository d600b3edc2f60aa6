// Reductions that carry two sums.
#pragma once

#include "rensa/backend/cpu/argreduce.h"
#include "rensa/core/reductions.h"
#include "rensa/core/ufunc.h"

namespace rensa::host {

/// Reduction::deviations and Reduction::nanmean, each in one pass over the input.
void run_moments(Reduction reduction, ComputeType type, const SplitAxes& split);

}  // namespace rensa::host

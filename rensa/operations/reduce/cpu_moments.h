// Reductions that carry two sums.
#pragma once

#include "rensa/core/reductions.h"
#include "rensa/core/ufunc_info.h"
#include "rensa/operations/reduce/cpu_argreduce.h"

namespace rensa::host {

/// reduction::deviations and reduction::nanmean, each in one pass over the input.
void run_moments(Reduction reduction, ComputeType type, const SplitAxes& split);

}  // namespace rensa::host

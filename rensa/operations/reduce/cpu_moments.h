// Reductions that carry two sums.
#pragma once

#include "rensa/core/reductions.h"
#include "rensa/core/ufunc_info.h"
#include "rensa/operations/reduce/cpu_argreduce.h"

namespace rensa::host {

/// reduction::deviations, variance, standard_deviation and nanmean, each in one pass over the
/// input. The means that deviations are from go to `means`, where that is not null, as the results
/// lie in the output.
void run_moments(Reduction reduction, ComputeType type, const SplitAxes& split,
                 char* means = nullptr);

}  // namespace rensa::host

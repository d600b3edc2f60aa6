// Recurrent layers of some hundred units on a GPU.
#pragma once

#include "rensa/functions/operations/recurrent_steps/recurrent_steps.h"

namespace rensa::cuda {

/// Queues RecurrentSteps of a layer that fits.
void follow_in_teams(const operations::RecurrentSteps& op, const LaunchContext& context);

}  // namespace rensa::cuda

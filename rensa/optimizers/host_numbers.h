// What optimizers, hooks and models keep on the host, as a recording looks at it.
#pragma once

#include <memory>

#include "rensa/optimizers/optimizer.h"

namespace rensa {

/// Tells a recording in progress on the thread of the numbers, flags and texts that an update works
/// with: hyperparameters, and what the algorithm, the hooks and the model show in members()
/// (Counters are counted by replays). A step that changes one of them itself stays eager; one whose
/// algorithm or hook does not ask for them anew is recorded anew where somebody else has changed
/// them.
void watch_numbers(const UpdateCall& call, const std::shared_ptr<OptimizerState>& optimizer);

/// Whether members() shows anything.
[[nodiscard]] bool shows_anything(const Members& members);

}  // namespace rensa

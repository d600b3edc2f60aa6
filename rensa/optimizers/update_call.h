// What an update works on: the parameters that it changes, and what is kept for them.
#pragma once

#include <memory>
#include <vector>

#include "rensa/optimizers/optimizer.h"

namespace rensa {

/// A recording in progress on the thread stays eager: the step does something that replays would
/// not.
void refuse_recording(const char* reason);

/// Whether a parameter is of 16 bits, and may be updated in float32.
[[nodiscard]] bool is_narrow(const Array& parameter);

/// Makes the states and the float32 copy of a parameter, where they are missing or lie elsewhere.
void prepare(UpdateRule& rule, const Array& parameter, const std::vector<UpdateState>& states);

/// The parameters of the model that have gradients, with these; what is kept for them is made where
/// it is missing.
[[nodiscard]] UpdateCall make_call(Link& model, const std::shared_ptr<OptimizerState>& optimizer);

/// The part of an update that this rank makes.
[[nodiscard]] UpdateCall own_part(const UpdateCall& call);

}  // namespace rensa

// Backward over several outputs at once.
#pragma once

#include "rensa/autograd/variable.h"

namespace rensa {

/// Gradients of `outputs` into all leaves, from the gradients already set on them.
void backward(const Variables& outputs, const BackwardOptions& options = {});

}  // namespace rensa

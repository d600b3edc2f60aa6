// Backward over several outputs at once.
#pragma once

#include "rensa/autograd/variable.h"

namespace rensa {

/// Gradients of `outputs` into all leaves, from the gradients already set on them. What nobody else
/// holds of their graph is given back on the way: backward(std::move(losses)). A list in braces
/// holds its variables until the call is done.
void backward(Variables outputs, const BackwardOptions& options = {});

}  // namespace rensa

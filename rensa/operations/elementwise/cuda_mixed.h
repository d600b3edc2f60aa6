// Arithmetic on arrays of different floating dtypes on a GPU.
#pragma once

#include <span>

#include "rensa/operations/elementwise/elementwise.h"

namespace rensa::cuda {

/// Runs a row of two inputs that costs no more than it moves, in float32 and by vectors, where the
/// operands are flat arrays of float16, bfloat16 and float32, not all of one dtype; false where
/// nothing was done. `views` are the output and the inputs, axes in order and merged.
bool run_mixed(const operations::Elementwise& op, const LaunchContext& context,
               std::span<const ArrayView> views);

}  // namespace rensa::cuda

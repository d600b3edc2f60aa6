// Reductions of views, as other parts of the CPU backend ask for them.
#pragma once

#include "rensa/core/array_view.h"
#include "rensa/core/reductions.h"

namespace rensa::host {

/// See Reduce in operations/reduce/reduce.h. What is added to what follows from shapes and strides
/// alone, not from the number of threads.
void run_reduce(Reduction reduction, unsigned axes, Dtype compute, const ArrayView& in,
                const ArrayView& out);

}  // namespace rensa::host

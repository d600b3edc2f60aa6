// The functors of all rows of ops.def: op::exp{}(a). For kernels that are made at run time, and
// tests; a kernel of the library reads the subject that it is made of.
#pragma once

#include "rensa/core/begin_functors.h"

namespace rensa::op {
#include "rensa/core/ops.def"
}  // namespace rensa::op

#include "rensa/core/end_functors.h"

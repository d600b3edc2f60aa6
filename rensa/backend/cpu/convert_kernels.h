// The conversions of a table of kernels, which each instruction set has.
#pragma once

#include "rensa/backend/cpu/kernels.h"

namespace rensa::host {

/// Adds the set's loads, stores and fill.
RENSA_EACH_SET(void add_conversions(KernelTable&);)

}  // namespace rensa::host

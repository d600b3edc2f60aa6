// xp's ufuncs of core/ufuncs/hyperbolic.def.
#pragma once

#include "rensa/array/ufuncs/begin.h"

namespace rensa::xp {
#include "rensa/core/ufuncs/hyperbolic.def"
}  // namespace rensa::xp

#include "rensa/array/ufuncs/end.h"

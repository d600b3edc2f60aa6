// xp's ufuncs of core/ufuncs/exponential.def.
#pragma once

#include "rensa/array/ufuncs/begin.h"

namespace rensa::xp {
#include "rensa/core/ufuncs/exponential.def"
}  // namespace rensa::xp

#include "rensa/array/ufuncs/end.h"

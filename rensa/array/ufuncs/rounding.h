// xp's ufuncs of core/ufuncs/rounding.def.
#pragma once

#include "rensa/array/ufuncs/begin.h"

namespace rensa::xp {
#include "rensa/core/ufuncs/rounding.def"
}  // namespace rensa::xp

#include "rensa/array/ufuncs/end.h"

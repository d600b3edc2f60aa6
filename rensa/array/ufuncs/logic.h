// xp's ufuncs of core/ufuncs/logic.def.
#pragma once

#include "rensa/array/ufuncs/begin.h"

namespace rensa::xp {
#include "rensa/core/ufuncs/logic.def"
}  // namespace rensa::xp

#include "rensa/array/ufuncs/end.h"

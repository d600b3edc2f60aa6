// xp's ufuncs of core/ufuncs/special.def.
#pragma once

#include "rensa/array/ufuncs/begin.h"

namespace rensa::xp {
#include "rensa/core/ufuncs/special.def"
}  // namespace rensa::xp

#include "rensa/array/ufuncs/end.h"

// xp's ufuncs of core/ufuncs/powers.def.
#pragma once

#include "rensa/array/ufuncs/begin.h"

namespace rensa::xp {
#include "rensa/core/ufuncs/powers.def"
}  // namespace rensa::xp

#include "rensa/array/ufuncs/end.h"

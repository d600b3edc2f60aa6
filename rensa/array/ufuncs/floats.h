// xp's ufuncs of core/ufuncs/floats.def.
#pragma once

#include "rensa/array/ufuncs/begin.h"

namespace rensa::xp {
#include "rensa/core/ufuncs/floats.def"
}  // namespace rensa::xp

#include "rensa/array/ufuncs/end.h"

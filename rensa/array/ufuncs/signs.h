// xp's ufuncs of core/ufuncs/signs.def.
#pragma once

#include "rensa/array/ufuncs/begin.h"

namespace rensa::xp {
#include "rensa/core/ufuncs/signs.def"
}  // namespace rensa::xp

#include "rensa/array/ufuncs/end.h"

// xp's ufuncs of core/ufuncs/extrema.def.
#pragma once

#include "rensa/array/ufuncs/begin.h"

namespace rensa::xp {
#include "rensa/core/ufuncs/extrema.def"
}  // namespace rensa::xp

#include "rensa/array/ufuncs/end.h"

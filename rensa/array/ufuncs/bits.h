// xp's ufuncs of core/ufuncs/bits.def.
#pragma once

#include "rensa/array/ufuncs/begin.h"

namespace rensa::xp {
#include "rensa/core/ufuncs/bits.def"
}  // namespace rensa::xp

#include "rensa/array/ufuncs/end.h"

// xp's ufuncs of core/ufuncs/arithmetic.def.
#pragma once

#include "rensa/array/ufuncs/begin.h"

namespace rensa::xp {
#include "rensa/core/ufuncs/arithmetic.def"
}  // namespace rensa::xp

#include "rensa/array/ufuncs/end.h"

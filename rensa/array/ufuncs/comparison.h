// xp's ufuncs of core/ufuncs/comparison.def.
#pragma once

#include "rensa/array/ufuncs/begin.h"

namespace rensa::xp {
#include "rensa/core/ufuncs/comparison.def"
}  // namespace rensa::xp

#include "rensa/array/ufuncs/end.h"

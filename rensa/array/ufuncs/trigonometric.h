// xp's ufuncs of core/ufuncs/trigonometric.def.
#pragma once

#include "rensa/array/ufuncs/begin.h"

namespace rensa::xp {
#include "rensa/core/ufuncs/trigonometric.def"
}  // namespace rensa::xp

#include "rensa/array/ufuncs/end.h"

// All ufuncs of xp.
#pragma once

#include "rensa/array/ufuncs/arithmetic.h"
#include "rensa/array/ufuncs/bits.h"
#include "rensa/array/ufuncs/comparison.h"
#include "rensa/array/ufuncs/exponential.h"
#include "rensa/array/ufuncs/extrema.h"
#include "rensa/array/ufuncs/floats.h"
#include "rensa/array/ufuncs/hyperbolic.h"
#include "rensa/array/ufuncs/logic.h"
#include "rensa/array/ufuncs/powers.h"
#include "rensa/array/ufuncs/rounding.h"
#include "rensa/array/ufuncs/signs.h"
#include "rensa/array/ufuncs/special.h"
#include "rensa/array/ufuncs/trigonometric.h"

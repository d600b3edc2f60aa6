// What the files that compile kernels for an instruction set include, before they switch to it: the
// standard headers above all, so that no inline function of theirs is compiled for instructions
// that the machine may not have. Everything of the project's that the kernels call is inlined by
// force.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

// clang-format off
#include "rensa/backend/cpu/vector_math.h"  // before functors.h, which calls what it declares
#include "rensa/core/philox.h"
#include "rensa/core/reduction_functors.h"
// clang-format on
#include "rensa/backend/cpu/convert.h"
#include "rensa/backend/cpu/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define RENSA_X86 1
#endif

// The next loop's iterations do not depend on each other: outputs lie exactly on inputs or apart.
// (Clang has nothing of the kind that stays silent; it checks for overlap at run time.)
#if defined(__clang__)
#define RENSA_IVDEP
#else
#define RENSA_IVDEP _Pragma("GCC ivdep")
#endif

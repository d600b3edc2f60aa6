// What the kernels of a *_kernels.cc are made of: conversions and the functions of values, all of
// them inlined by force (instruction_sets.h says why).
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

// clang-format off
#include "rensa/backend/cpu/vector_math.h"  // before functors.h, which calls what it declares
#include "rensa/core/functors.h"
#include "rensa/core/philox.h"
// clang-format on
#include "rensa/backend/cpu/kernels.h"
#include "rensa/portable/element_types.h"
#include "rensa/portable/reduce_parts.h"

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

#if defined(RENSA_SET)
namespace rensa::host::RENSA_SET {

/// Calls add<V>() for each value type that the set has kernels of; of the others all have the
/// baseline's.
template <class Add> RENSA_FN constexpr void each_value_type(const Add& add) {
  add.template operator()<float>();
  add.template operator()<double>();
  add.template operator()<long long>();
  if constexpr (InstructionSet::RENSA_SET == InstructionSet::baseline) {  // rare, or scalar anyway
    add.template operator()<unsigned long long>();
    add.template operator()<complex_t<float>>();
    add.template operator()<complex_t<double>>();
  }
}

}  // namespace rensa::host::RENSA_SET
#endif

// The inner loop of index arrays.
#pragma once

#include <cstdint>

#include "rensa/backend/cpu/instruction_sets.h"

namespace rensa::host {

/// offsets[i] += stride * (indices[i], counted from the end where negative); bounds[0] and [1] are
/// the least and the greatest of what is multiplied, in [0, extent) where all indices are good.
using ResolveKernel = void (*)(std::int64_t n, const std::int64_t* indices, std::int64_t extent,
                               std::int64_t stride, std::int64_t* offsets, std::int64_t* bounds);
/// For best_instruction_set().
ResolveKernel resolve_kernel();

RENSA_EACH_SET(ResolveKernel get_resolve_kernel();)

}  // namespace rensa::host

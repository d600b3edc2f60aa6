// The environment's say in memory pools.
#pragma once

#include <cstdint>
#include <string_view>

namespace rensa {

/// "90%" of `total`, or a number of bytes, as RENSA_GPU_MEMORY_LIMIT has it. Throws ValueError.
std::int64_t parse_memory_limit(std::string_view text, std::int64_t total);
/// RENSA_POOL=off: every allocation goes to the driver (the heap) and every free back.
bool pool_off();
/// RENSA_POOL_POISON=1: freed blocks are overwritten.
bool pool_poison();

}  // namespace rensa

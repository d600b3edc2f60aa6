// The environment's say in memory pools.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rensa {

class MemoryPool;

/// "90%" of `total`, or a number of bytes, as RENSA_GPU_MEMORY_LIMIT has it. Throws ValueError that
/// names `who` asked.
std::int64_t parse_memory_limit(const char* who, std::string_view text, std::int64_t total);
/// `fraction` of `total` bytes; ValueError when `total` is not known (0).
std::int64_t memory_share(const char* who, double fraction, std::int64_t total);
/// "1.50 MiB", "512 bytes".
std::string readable_bytes(std::int64_t bytes);
/// RENSA_GPU_MEMORY_LIMIT: every pool of a GPU's memory starts with it.
void limit_from_environment(MemoryPool& pool);
/// RENSA_POOL=off: every allocation goes to the driver (the heap) and every free back.
bool pool_off();
/// RENSA_POOL_POISON=1: freed blocks are overwritten.
bool pool_poison();

}  // namespace rensa

// The inner loops of random numbers.
#pragma once

#include <cstdint>

#include "rensa/backend/cpu/instruction_sets.h"
#include "rensa/core/random_integers.h"

namespace rensa::host {

/// words[4 * i ...] = the four words of Philox counter first + i
using PhiloxKernel = void (*)(unsigned long long seed, unsigned long long first, std::int64_t n,
                              std::uint32_t* words);

/// i = order.step(i) for each
using WalkKernel = void (*)(const PseudoOrder& order, std::int64_t n, std::uint64_t* i);

struct RandomKernels {
  PhiloxKernel philox;
  WalkKernel walk;
};
/// The kernels for best_instruction_set().
const RandomKernels& random_kernels();

RENSA_EACH_SET(RandomKernels get_random_kernels();)

}  // namespace rensa::host

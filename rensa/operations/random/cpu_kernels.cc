// The loops of random numbers, for one instruction set.
#include "rensa/operations/random/cpu_kernels.h"

#include "rensa/backend/cpu/kernel_sources.h"

namespace rensa::host::RENSA_SET {

namespace {

void philox_words(unsigned long long seed, unsigned long long first, std::int64_t n,
                  std::uint32_t* words) {
  for (std::int64_t i = 0; i < n; ++i) {
    PhiloxWords w = philox(seed, first + static_cast<unsigned long long>(i));
    for (int k = 0; k < 4; ++k) words[4 * i + k] = w.word[k];
  }
}

void walk_order(const PseudoOrder& shared, std::int64_t n, std::uint64_t* i) {
  PseudoOrder order = shared;  // nothing that is written lies in it
  RENSA_IVDEP
  for (std::int64_t k = 0; k < n; ++k) i[k] = order.step(i[k]);
}

}  // namespace

RandomKernels get_random_kernels() { return {philox_words, walk_order}; }

}  // namespace rensa::host::RENSA_SET

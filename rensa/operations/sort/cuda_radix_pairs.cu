// Radix sorts of unsigned keys with 32-bit values.
#include "rensa/operations/sort/cuda_radix_sort.cuh"

namespace rensa::cuda {

RENSA_RADIX_PAIRS(unsigned, unsigned)
RENSA_RADIX_PAIRS(unsigned long long, unsigned)

}  // namespace rensa::cuda

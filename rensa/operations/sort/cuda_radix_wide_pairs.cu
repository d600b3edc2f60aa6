// Radix sorts of 64-bit keys with 64-bit values.
#include "rensa/operations/sort/cuda_radix_sort.cuh"

namespace rensa::cuda {

RENSA_RADIX_PAIRS(unsigned long long, long long)

}  // namespace rensa::cuda

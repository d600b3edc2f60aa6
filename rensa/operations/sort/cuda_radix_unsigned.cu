// Radix sorts of unsigned keys.
#include "rensa/operations/sort/cuda_radix_sort.cuh"

namespace rensa::cuda {

RENSA_RADIX_KEYS(unsigned)
RENSA_RADIX_BUFFERS(unsigned)
RENSA_RADIX_KEYS(unsigned long long)
RENSA_RADIX_BUFFERS(unsigned long long)

}  // namespace rensa::cuda

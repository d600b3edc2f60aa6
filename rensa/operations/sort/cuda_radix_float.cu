// Radix sorts of keys that are floats.
#include "rensa/operations/sort/cuda_radix_sort.cuh"

namespace rensa::cuda {

RENSA_RADIX_KEYS(float)
RENSA_RADIX_KEYS(double)

}  // namespace rensa::cuda

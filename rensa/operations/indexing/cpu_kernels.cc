// The loop of index arrays, for one instruction set.
#include "rensa/operations/indexing/cpu_kernels.h"

#include "rensa/backend/cpu/kernel_sources.h"

namespace rensa::host::RENSA_SET {

namespace {

void resolve_indices(std::int64_t n, const std::int64_t* indices, std::int64_t extent,
                     std::int64_t stride, std::int64_t* offsets, std::int64_t* bounds) {
  std::int64_t least = extent, most = -1;
  RENSA_IVDEP
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t index = indices[i] + (indices[i] < 0 ? extent : 0);
    least = index < least ? index : least;
    most = index > most ? index : most;
    offsets[i] += index * stride;
  }
  bounds[0] = least;
  bounds[1] = most;
}

}  // namespace

ResolveKernel get_resolve_kernel() { return resolve_indices; }

}  // namespace rensa::host::RENSA_SET

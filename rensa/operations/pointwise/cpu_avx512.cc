// The pointwise kernels, compiled for AVX-512.
#include "rensa/backend/cpu/kernel_sources.h"
#include "rensa/operations/pointwise/cpu_kernels.h"
#include "rensa/operations/pointwise/functors.h"

#if RENSA_X86
#include "rensa/backend/cpu/target_avx512.inc"

namespace rensa::host::avx512 {
#include "rensa/operations/pointwise/cpu_kernels.inc"

static void add(PointwiseTable& table) {
  add_pointwise<float>(table);
  add_pointwise<double>(table);
}
}  // namespace rensa::host::avx512

#include "rensa/backend/cpu/target_end.inc"

namespace rensa::host {
void add_pointwise_avx512(PointwiseTable& table) { avx512::add(table); }
}  // namespace rensa::host
#endif

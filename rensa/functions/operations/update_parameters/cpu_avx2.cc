// The loops of updates, compiled for AVX2.
// clang-format off
#include "rensa/backend/cpu/kernel_sources.h"
#include "rensa/functions/operations/update_parameters/cpu_kernels.h"
#include "rensa/core/update_functors.h"
// clang-format on

#if RENSA_X86
#include "rensa/backend/cpu/target_avx2.inc"

namespace rensa::host::avx2 {
#include "rensa/functions/operations/update_parameters/cpu_kernels.inc"

static void get(UpdateKernels& f, UpdateKernels& d) {
  f = make_update_kernels<float>();
  d = make_update_kernels<double>();
}
}  // namespace rensa::host::avx2

#include "rensa/backend/cpu/target_end.inc"

namespace rensa::host {
void get_update_avx2(UpdateKernels& f, UpdateKernels& d) { avx2::get(f, d); }
}  // namespace rensa::host
#endif

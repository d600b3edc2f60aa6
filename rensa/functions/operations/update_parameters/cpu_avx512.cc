// The loops of updates, compiled for AVX-512.
// clang-format off
#include "rensa/backend/cpu/kernel_sources.h"
#include "rensa/functions/operations/update_parameters/cpu_kernels.h"
#include "rensa/core/update_functors.h"
// clang-format on

#if RENSA_X86
#include "rensa/backend/cpu/target_avx512.inc"

namespace rensa::host::avx512 {
#include "rensa/functions/operations/update_parameters/cpu_kernels.inc"

static void get(UpdateKernels& f, UpdateKernels& d) {
  f = make_update_kernels<float>();
  d = make_update_kernels<double>();
}
}  // namespace rensa::host::avx512

#include "rensa/backend/cpu/target_end.inc"

namespace rensa::host {
void get_update_avx512(UpdateKernels& f, UpdateKernels& d) { avx512::get(f, d); }
}  // namespace rensa::host
#endif

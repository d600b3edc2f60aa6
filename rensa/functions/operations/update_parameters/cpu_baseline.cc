// The loops of updates, compiled for any machine of the architecture.
// clang-format off
#include "rensa/backend/cpu/kernel_sources.h"
#include "rensa/functions/operations/update_parameters/cpu_kernels.h"
#include "rensa/core/update_functors.h"
// clang-format on

namespace rensa::host {
namespace baseline {
#include "rensa/functions/operations/update_parameters/cpu_kernels.inc"
}  // namespace baseline

void get_update_baseline(UpdateKernels& f, UpdateKernels& d) {
  f = baseline::make_update_kernels<float>();
  d = baseline::make_update_kernels<double>();
}
}  // namespace rensa::host

// The pointwise kernels, compiled for any machine of the architecture.
#include "rensa/backend/cpu/kernel_sources.h"
#include "rensa/operations/pointwise/cpu_kernels.h"
#include "rensa/operations/pointwise/functors.h"

namespace rensa::host {
namespace baseline {
#include "rensa/operations/pointwise/cpu_kernels.inc"
}  // namespace baseline

void add_pointwise_baseline(PointwiseTable& table) {
  baseline::add_pointwise<float>(table);
  baseline::add_pointwise<double>(table);
  baseline::add_pointwise<complex_t<float>>(table);
  baseline::add_pointwise<complex_t<double>>(table);
}
}  // namespace rensa::host

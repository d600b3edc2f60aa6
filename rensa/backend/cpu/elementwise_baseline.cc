// The elementwise kernels, compiled for any machine of the architecture.
#include "rensa/backend/cpu/kernel_sources.h"

namespace rensa::host {
namespace baseline {
#include "rensa/backend/cpu/elementwise_kernels.inc"
}  // namespace baseline

void add_elementwise_baseline(KernelTable& table) {
  baseline::add_elementwise<float>(table);
  baseline::add_elementwise<double>(table);
  baseline::add_elementwise<long long>(table);
  baseline::add_stored(table);
}
}  // namespace rensa::host

// The conversion and reduction kernels, compiled for any machine of the architecture.
#include "rensa/backend/cpu/kernel_sources.h"

namespace rensa::host {
namespace baseline {
#include "rensa/backend/cpu/other_kernels.inc"
}  // namespace baseline

void add_other_baseline(KernelTable& table) {
  baseline::add_other<float>(table);
  baseline::add_other<double>(table);
  baseline::add_other<long long>(table);
  baseline::add_truths(table);
}
}  // namespace rensa::host

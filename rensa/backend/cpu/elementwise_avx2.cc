// The elementwise kernels, compiled for AVX2.
#include "rensa/backend/cpu/kernel_sources.h"

#if RENSA_X86
#include "rensa/backend/cpu/target_avx2.inc"

namespace rensa::host::avx2 {
#include "rensa/backend/cpu/elementwise_kernels.inc"

static void add(KernelTable& table) {
  add_elementwise<float>(table);
  add_elementwise<double>(table);
  add_elementwise<long long>(table);
  add_stored(table);
}
}  // namespace rensa::host::avx2

#include "rensa/backend/cpu/target_end.inc"

namespace rensa::host {
void add_elementwise_avx2(KernelTable& table) { avx2::add(table); }
}  // namespace rensa::host
#endif

// The conversion and reduction kernels, compiled for AVX-512.
#include "rensa/backend/cpu/kernel_sources.h"

#if RENSA_X86
#include "rensa/backend/cpu/target_avx512.inc"

namespace rensa::host::avx512 {
#include "rensa/backend/cpu/other_kernels.inc"

static void add(KernelTable& table) {
  add_other<float>(table);
  add_other<double>(table);
  add_other<long long>(table);
  add_truths(table);
}
}  // namespace rensa::host::avx512

#include "rensa/backend/cpu/target_end.inc"

namespace rensa::host {
void add_other_avx512(KernelTable& table) { avx512::add(table); }
}  // namespace rensa::host
#endif

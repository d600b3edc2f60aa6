// The elementwise kernels, compiled for AVX2.
#include "rensa/backend/cpu/kernel_sources.h"

#if RENSA_X86
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif

namespace rensa::host::avx2 {
#include "rensa/backend/cpu/elementwise_kernels.inc"

static void add(KernelTable& table) {
  add_elementwise<float>(table);
  add_elementwise<double>(table);
  add_elementwise<long long>(table);
  add_stored(table);
}
}  // namespace rensa::host::avx2

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace rensa::host {
void add_elementwise_avx2(KernelTable& table) { avx2::add(table); }
}  // namespace rensa::host
#endif

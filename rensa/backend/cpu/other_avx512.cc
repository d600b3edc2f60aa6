// The conversion, reduction and update kernels, compiled for AVX-512.
#include "rensa/backend/cpu/kernel_sources.h"

#if RENSA_X86
#if defined(__clang__)
#pragma clang attribute push( \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma,f16c,prefer-vector-width=512")
#endif

namespace rensa::host::avx512 {
#include "rensa/backend/cpu/other_kernels.inc"

static void add(KernelTable& table) {
  add_other<float>(table);
  add_other<double>(table);
  add_other<long long>(table);
  add_truths(table);
}
}  // namespace rensa::host::avx512

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace rensa::host {
void add_other_avx512(KernelTable& table) { avx512::add(table); }
}  // namespace rensa::host
#endif

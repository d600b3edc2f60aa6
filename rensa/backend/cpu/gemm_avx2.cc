// The tile kernels of products, compiled for AVX2.
#include <cstdint>

#include "rensa/backend/cpu/gemm.h"

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif

namespace rensa::host::avx2 {
constexpr int kVectorBytes = 32, kTileRows = 6;
#include "rensa/backend/cpu/gemm_kernels.inc"

static void get(GemmKernels<float>& f, GemmKernels<double>& d) {
  f = make_gemm_kernels<float>();
  d = make_gemm_kernels<double>();
}
}  // namespace rensa::host::avx2

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace rensa::host {
void get_gemm_avx2(GemmKernels<float>& f, GemmKernels<double>& d) { avx2::get(f, d); }
}  // namespace rensa::host
#endif

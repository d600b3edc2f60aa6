// The kernels of Fourier transforms, compiled for AVX2.
#include "rensa/backend/cpu/fft_kernels.h"

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif

namespace rensa::host::avx2 {
constexpr int kVectorBytes = 32;
#include "rensa/backend/cpu/fft_kernels.inc"

static void get(FftKernels<float>& f, FftKernels<double>& d) {
  f = make_fft_kernels<float>();
  d = make_fft_kernels<double>();
}
}  // namespace rensa::host::avx2

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace rensa::host {
void get_fft_avx2(FftKernels<float>& f, FftKernels<double>& d) { avx2::get(f, d); }
}  // namespace rensa::host
#endif

// The kernels of Fourier transforms, compiled for AVX-512.
#include "rensa/backend/cpu/fft_kernels.h"

#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push( \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma,f16c,prefer-vector-width=512")
#endif

namespace rensa::host::avx512 {
constexpr int kVectorBytes = 64;
#include "rensa/backend/cpu/fft_kernels.inc"

static void get(FftKernels<float>& f, FftKernels<double>& d) {
  f = make_fft_kernels<float>();
  d = make_fft_kernels<double>();
}
}  // namespace rensa::host::avx512

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace rensa::host {
void get_fft_avx512(FftKernels<float>& f, FftKernels<double>& d) { avx512::get(f, d); }
}  // namespace rensa::host
#endif

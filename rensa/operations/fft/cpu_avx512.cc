// The kernels of Fourier transforms, compiled for AVX-512.
#include "rensa/operations/fft/cpu_kernels.h"

#if defined(__x86_64__)
#include "rensa/backend/cpu/target_avx512.inc"

namespace rensa::host::avx512 {
constexpr int kVectorBytes = 64;
#include "rensa/operations/fft/cpu_kernels.inc"

static void get(FftKernels<float>& f, FftKernels<double>& d) {
  f = make_fft_kernels<float>();
  d = make_fft_kernels<double>();
}
}  // namespace rensa::host::avx512

#include "rensa/backend/cpu/target_end.inc"

namespace rensa::host {
void get_fft_avx512(FftKernels<float>& f, FftKernels<double>& d) { avx512::get(f, d); }
}  // namespace rensa::host
#endif

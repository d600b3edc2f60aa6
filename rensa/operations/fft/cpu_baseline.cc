// The kernels of Fourier transforms, compiled for any machine.
#include "rensa/operations/fft/cpu_kernels.h"

namespace rensa::host::baseline {
constexpr int kVectorBytes = 16;
#include "rensa/operations/fft/cpu_kernels.inc"

static void get(FftKernels<float>& f, FftKernels<double>& d) {
  f = make_fft_kernels<float>();
  d = make_fft_kernels<double>();
}
}  // namespace rensa::host::baseline

namespace rensa::host {
void get_fft_baseline(FftKernels<float>& f, FftKernels<double>& d) { baseline::get(f, d); }
}  // namespace rensa::host

// The tile kernels of products, compiled for AVX-512.
#include <cstdint>

#include "rensa/operations/matmul/cpu_gemm.h"

#if defined(__x86_64__)
#include "rensa/backend/cpu/target_avx512.inc"

namespace rensa::host::avx512 {
constexpr int kVectorBytes = 64, kTileRows = 14;
#include "rensa/operations/matmul/cpu_gemm_kernels.inc"

static void get(GemmKernels<float>& f, GemmKernels<double>& d) {
  f = make_gemm_kernels<float>();
  d = make_gemm_kernels<double>();
}
}  // namespace rensa::host::avx512

#include "rensa/backend/cpu/target_end.inc"

namespace rensa::host {
void get_gemm_avx512(GemmKernels<float>& f, GemmKernels<double>& d) { avx512::get(f, d); }
}  // namespace rensa::host
#endif

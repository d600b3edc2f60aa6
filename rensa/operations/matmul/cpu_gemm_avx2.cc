// The tile kernels of products, compiled for AVX2.
#include <cstdint>

#include "rensa/operations/matmul/cpu_gemm.h"

#if defined(__x86_64__)
#include "rensa/backend/cpu/target_avx2.inc"

namespace rensa::host::avx2 {
constexpr int kVectorBytes = 32, kTileRows = 6;
#include "rensa/operations/matmul/cpu_gemm_kernels.inc"

static void get(GemmKernels<float>& f, GemmKernels<double>& d) {
  f = make_gemm_kernels<float>();
  d = make_gemm_kernels<double>();
}
}  // namespace rensa::host::avx2

#include "rensa/backend/cpu/target_end.inc"

namespace rensa::host {
void get_gemm_avx2(GemmKernels<float>& f, GemmKernels<double>& d) { avx2::get(f, d); }
}  // namespace rensa::host
#endif

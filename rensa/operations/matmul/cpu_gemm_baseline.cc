// The tile kernels of products, compiled for any machine of the architecture.
#include <cstdint>

#include "rensa/operations/matmul/cpu_gemm.h"

namespace rensa::host::baseline {
constexpr int kVectorBytes = 16, kTileRows = 6;
#include "rensa/operations/matmul/cpu_gemm_kernels.inc"

static void get(GemmKernels<float>& f, GemmKernels<double>& d) {
  f = make_gemm_kernels<float>();
  d = make_gemm_kernels<double>();
}
}  // namespace rensa::host::baseline

namespace rensa::host {
void get_gemm_baseline(GemmKernels<float>& f, GemmKernels<double>& d) { baseline::get(f, d); }
}  // namespace rensa::host

// How calls of the CUDA runtime are checked. (Includes the runtime's header: for .cc files of the
// CUDA side.)
#pragma once

#include <cuda_runtime.h>

namespace rensa::cuda {

/// Throws CudaError naming `operation` and what the runtime says.
[[noreturn]] void throw_cuda_error(const char* operation, cudaError_t error);

}  // namespace rensa::cuda

#define RENSA_CUDA_CHECK(expression)                                            \
  do {                                                                          \
    if (cudaError_t rensa_error = (expression); rensa_error != cudaSuccess) {   \
      (void)cudaGetLastError(); /* later calls shall not report it once more */ \
      ::rensa::cuda::throw_cuda_error(#expression, rensa_error);                \
    }                                                                           \
  } while (0)

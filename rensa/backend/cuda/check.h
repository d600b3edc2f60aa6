// How calls of the CUDA runtime are checked. (Includes the runtime's header: for files of the CUDA
// side.)
#pragma once

#include <cuda_runtime.h>

namespace rensa::cuda {

/// Throws CudaError naming `operation` and what the runtime says.
[[noreturn]] void throw_cuda_error(const char* operation, cudaError_t error);

}  // namespace rensa::cuda

/// Calls the runtime; where it fails the error names `operation`.
#define RENSA_CUDA_CHECK(operation, expression)                                 \
  do {                                                                          \
    if (cudaError_t rensa_error = (expression); rensa_error != cudaSuccess) {   \
      (void)cudaGetLastError(); /* later calls shall not report it once more */ \
      ::rensa::cuda::throw_cuda_error((operation), rensa_error);                \
    }                                                                           \
  } while (0)
/// The same for what is no operation's: the error names the call.
#define RENSA_CUDA_CALL(expression) RENSA_CUDA_CHECK(#expression, expression)

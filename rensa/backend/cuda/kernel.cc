// The host side of what the CUDA kernels share.
#include <cuda_runtime.h>

#include <fmt/format.h>

#include <complex>
#include <cstring>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/core/error.h"

namespace rensa::cuda {

void throw_cuda_error(const char* operation, cudaError_t error) {
  throw CudaError(fmt::format("{}: CUDA says {} ({})", operation, cudaGetErrorString(error),
                              cudaGetErrorName(error)));
}

void make_number(const Scalar& scalar, Dtype compute, unsigned char (&number)[16]) {
  auto put = [&number](auto v) { std::memcpy(number, &v, sizeof(v)); };
  switch (compute_type(compute)) {
    case ComputeType::i64:
      return compute == bool_ ? put(scalar.as<bool>() ? 1ll : 0ll) : put(scalar.as<long long>());
    case ComputeType::u64: return put(scalar.as<unsigned long long>());
    case ComputeType::f32:
      if (compute == float16) return put(static_cast<float>(half_t(scalar.as<float>())));
      if (compute == bfloat16) return put(static_cast<float>(bfloat16_t(scalar.as<float>())));
      return put(scalar.as<float>());
    case ComputeType::f64: return put(scalar.as<double>());
    case ComputeType::c64: return put(scalar.as<std::complex<float>>());
    case ComputeType::c128: return put(scalar.as<std::complex<double>>());
  }
}

}  // namespace rensa::cuda

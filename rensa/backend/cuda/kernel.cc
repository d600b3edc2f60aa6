// The host side of what the CUDA kernels share.
#include <cuda_runtime.h>

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <complex>
#include <cstring>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/core/error.h"
#include "rensa/device/stream_state.h"

namespace rensa::cuda {

void throw_cuda_error(const char* operation, cudaError_t error) {
  throw CudaError(fmt::format("{}: CUDA says {} ({})", operation, cudaGetErrorString(error),
                              cudaGetErrorName(error)));
}

namespace {

/// Whether the library's kernels were compiled for a GPU that can, with the instruction in them
/// that waits: what is compiled for one before it lacks that.
bool can_overlap(const LaunchContext& context, const void* kernel) {
  enum : signed char { unknown, no, yes };
  static std::array<std::atomic<signed char>, kMaxGpus> devices{};
  auto& known = devices[static_cast<std::size_t>(context.device.index)];
  signed char state = known.load(std::memory_order_relaxed);
  if (state == unknown) {
    cudaFuncAttributes attributes{};
    bool can = cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess &&
               attributes.ptxVersion >= 90 && attributes.binaryVersion >= 90;
    (void)cudaGetLastError();  // the launch says what is wrong
    known.store(state = can ? yes : no, std::memory_order_relaxed);
  }
  return state == yes;
}

/// Whether what is queued becomes part of a graph of the library's. In somebody else's, of an
/// external stream that they capture, the dependence is an edge of that kind.
bool is_recorded(const LaunchContext& context) {
  return context.handle != context.stream->handle() || context.stream->capture();
}

}  // namespace

void launch_kernel_early(const char* operation, const LaunchContext& context, const void* kernel,
                         dim3 grid, int block, void* args) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(static_cast<unsigned>(block));
  config.stream = static_cast<cudaStream_t>(context.handle);
  config.attrs = &early;
  config.numAttrs = can_overlap(context, kernel) && !is_recorded(context) ? 1 : 0;
  RENSA_CUDA_CHECK(operation, cudaLaunchKernelExC(&config, kernel, &args));
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

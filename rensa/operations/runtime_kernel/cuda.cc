// The launch of a kernel compiled at run time.
#include <fmt/format.h>

#include "rensa/backend/cuda/driver.h"
#include "rensa/core/error.h"
#include "rensa/operations/runtime_kernel/runtime_kernel.h"

namespace rensa::operations {

void RuntimeKernel::run_cuda(const cuda::LaunchContext& context) {
  if (!function) {
    throw DeviceError(fmt::format("{}: it is a kernel for the CPU, its arrays are on {}", name(),
                                  context.device.str()));
  }
  std::vector<void*> addresses = argument_addresses(context.workspace, context.semaphores);
  // The driver takes a kernel of a library for a function of the current context.
  auto* kernel = static_cast<CUfunction>(const_cast<void*>(function));
  const cuda::Driver& driver = cuda::driver();
  CUlaunchAttribute attribute = {};
  CUlaunchConfig config = {};
  config.gridDimX = grid.x;
  config.gridDimY = grid.y;
  config.gridDimZ = grid.z;
  config.blockDimX = block.x;
  config.blockDimY = block.y;
  config.blockDimZ = block.z;
  config.sharedMemBytes = shared_bytes;
  config.hStream = static_cast<CUstream>(context.handle);
  config.attrs = &attribute;
  if (start == Start::together) {
    attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attribute.value.cooperative = 1;
    config.numAttrs = 1;
  } else if (start == Start::early && cuda::architecture(context.device) >= 90) {
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute.value.programmaticStreamSerializationAllowed = 1;
    config.numAttrs = 1;
  }
  CUresult result = driver.launch_kernel(&config, kernel, addresses.data(), nullptr);
  if (result != CUDA_SUCCESS) {
    throw CudaError(fmt::format(
        "{}: the CUDA driver says {} for a grid of ({}, {}, {}), blocks of ({}, {}, {}) and {} "
        "bytes of shared memory",
        name(), cuda::driver_error_text(result), grid.x, grid.y, grid.z, block.x, block.y, block.z,
        shared_bytes));
  }
}

}  // namespace rensa::operations

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
  auto* stream = static_cast<CUstream>(context.handle);
  CUresult result =
      cooperative
          ? driver.launch_cooperative_kernel(kernel, grid.x, grid.y, grid.z, block.x, block.y,
                                             block.z, shared_bytes, stream, addresses.data())
          : driver.launch_kernel(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                 shared_bytes, stream, addresses.data(), nullptr);
  if (result != CUDA_SUCCESS) {
    throw CudaError(fmt::format(
        "{}: the CUDA driver says {} for a grid of ({}, {}, {}), blocks of ({}, {}, {}) and {} "
        "bytes of shared memory",
        name(), cuda::driver_error_text(result), grid.x, grid.y, grid.z, block.x, block.y, block.z,
        shared_bytes));
  }
}

}  // namespace rensa::operations

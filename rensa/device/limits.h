// Limits on what work of a GPU may take: the driver's (cudaDeviceSetLimit), and that on scratch.
#pragma once

#include <cstddef>

#include "rensa/core/device.h"

namespace rensa::cuda {

/// CUDA's limits of a device.
enum class Limit {
  stack_size,        // bytes of a thread's stack
  printf_fifo_size,  // bytes of what printf in kernels writes to
  malloc_heap_size,  // bytes of the heap of malloc in kernels
  dev_runtime_pending_launch_count,
  max_l2_fetch_granularity,  // bytes, a hint
  persisting_l2_cache_size,  // bytes of the L2 cache that may be set aside
};

/// CuPy's cuda.runtime.deviceGetLimit and deviceSetLimit, of `device` or the current GPU (GPU 0
/// where the CPU is current). The driver may set another value than asked for; some limits can only
/// be set before the first kernel that needs them. Does not wait. Throws DeviceError, CudaError.
std::size_t device_get_limit(Limit limit);
std::size_t device_get_limit(Limit limit, Device device);
void device_set_limit(Limit limit, std::size_t value);
void device_set_limit(Limit limit, std::size_t value, Device device);

/// Chainer's cuda.get_max_workspace_size and set_max_workspace_size: the bytes of scratch that one
/// convolution may take on a GPU, for the whole process. RENSA_MAX_WORKSPACE_SIZE is where they
/// start, or 1 GiB. A recorded step keeps the plans that it was recorded with.
std::size_t get_max_workspace_size();
void set_max_workspace_size(std::size_t size);

}  // namespace rensa::cuda

// Arrays on GPUs that processes share.
#pragma once

#include <string>

#include "rensa/array/array.h"

namespace rensa::cuda {

/// Bytes by which another process on this machine opens the array's memory (cudaIpcGetMemHandle),
/// with its dtype, shape and strides. The array has to live as long as it is open there, and who
/// works on it when is the processes' own business (Event::ipc_handle). Does not wait. The memory
/// has to be the driver's device memory: the pool's is, that of managed_allocator and of
/// stream-ordered allocations is not (CudaError). Throws ValueError without an array, DeviceError
/// for one on the CPU.
std::string ipc_handle(const Array& a);

/// The array of another process's ipc_handle(), on the same GPU, which is `device` here; it shares
/// the other's memory. Closed with the last array on it, when what was queued on it is done. Throws
/// ValueError for bytes that are no handle, DeviceError, CudaError (in the process that made it,
/// too: CUDA opens a handle in others only).
[[nodiscard]] Array open_ipc_handle(const std::string& handle, Device device);

}  // namespace rensa::cuda

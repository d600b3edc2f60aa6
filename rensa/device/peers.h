// GPUs that reach each other's memory.
#pragma once

#include <span>

#include "rensa/core/device.h"

namespace rensa::cuda {

/// Whether kernels on either GPU can read and write the other's memory, as the pools give it; sets
/// that up the first time it is asked. True of a GPU and itself.
bool connect_peers(Device a, Device b);

/// Whether one kernel can work on memory of all the devices: they are GPUs that reach each other,
/// or all the CPU.
bool share_memory(std::span<const Device> devices);

}  // namespace rensa::cuda

// What GPUs there are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rensa/core/device.h"

namespace rensa {

/// GPUs that can be used; 0 without a driver or without CUDA in the build. Never throws.
int num_gpus();
/// gpu(index) if it is there, else cpu().
Device try_gpu(int index = 0);
/// All GPUs, or {cpu()} where there are none.
std::vector<Device> try_all_gpus();
/// Throws DeviceError that says why `device` cannot be used: no CUDA in the build, no driver, or
/// only so many GPUs.
void check_device(Device device);

namespace cuda {
/// Whether num_gpus() > 0.
bool is_available();
/// A readable account of driver, GPUs, libraries found and what is missing.
std::string diagnose();
MemoryInfo mem_info(Device device);  // free and total bytes. Throws DeviceError for the CPU.
}  // namespace cuda

}  // namespace rensa

// Classes of GPUs: those of one model share what was chosen for it.
#pragma once

#include <string>

#include "rensa/core/device.h"

namespace rensa::cuda {

/// GPUs of one model have one class, named by model and size. Throws CudaError.
int device_class(Device device);
std::string device_class_name(int device_class);
/// The class of that name, a new one if no GPU had it so far.
int find_device_class(const std::string& name);

}  // namespace rensa::cuda

// Library plans (how each product and each convolution is computed) kept in a file, so that a later
// run chooses alike: the same file, the same bits, and no time spent on choosing.
#pragma once

#include <string>

namespace rensa::cuda {

/// Writes the plans chosen so far. Throws SerializationError where the file cannot be written,
/// DeviceError without CUDA.
void save_plans(const std::string& path);

/// Plans made from now on are the file's where it has one. Throws SerializationError for a file
/// that cannot be read, is no plan file or was written with another cuBLASLt; plans for GPUs of
/// other models are kept but do nothing, and those of convolutions that another cuDNN has made or
/// that this one cannot follow are left out. A recorded step keeps the plans it was recorded with.
void load_plans(const std::string& path);

}  // namespace rensa::cuda

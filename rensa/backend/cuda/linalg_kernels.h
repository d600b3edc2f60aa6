// The kernels around the factorizations of cuSOLVER and cuBLAS.
#pragma once

#include <cstdint>

#include "rensa/device/operation.h"

namespace rensa::cuda {

/// pointers[i] = base + i * stride (bytes): a batch as the batched routines take it.
void launch_batch_pointers(const char* operation, const LaunchContext& context, void* base,
                           std::int64_t stride, std::int64_t count, void** pointers);

/// Reports the first of `count` matrices whose info is not 0 to the device's error word.
void launch_check_info(const char* operation, const LaunchContext& context, const int* info,
                       std::int64_t count);

/// Reports the first of `count` matrices whose `n` values, float64 or float32 in falling order, are
/// not finite.
void launch_check_values(const char* operation, const LaunchContext& context, const void* values,
                         bool wide, std::int64_t n, std::int64_t count);

}  // namespace rensa::cuda

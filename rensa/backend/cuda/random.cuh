// What the kernels that draw random numbers share.
#pragma once

#include "rensa/device/host_scalar.h"

namespace rensa::cuda {

/// The number of a step: in the kernel's arguments, or where a replay has put it.
__device__ __forceinline__ unsigned long long integer_of(const HostScalar& s) {
  return static_cast<unsigned long long>(s.device ? *static_cast<const long long*>(s.device)
                                                  : s.integer);
}

}  // namespace rensa::cuda

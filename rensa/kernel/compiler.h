// From a kernel's source to something that can be launched: compiled once per process, kept on
// disk.
#pragma once

#include <memory>
#include <string>

#include "rensa/operations/runtime_kernel/runtime_kernel.h"

namespace rensa::detail {

/// The module that NVRTC makes of `source` for `device`'s architecture. Throws CompileError,
/// CudaError.
std::shared_ptr<const cuda::GpuModule> gpu_module(const cuda::GpuSource& source, Device device);

/// The function `name` that the machine's C++ compiler ($CXX, c++, g++ or clang++) makes of `text`,
/// with its arguments `extern "C" void name(const void* const*, long long, long long)`. Throws
/// CompileError, NotImplementedError where there is no compiler.
operations::RuntimeKernel::HostFunction host_function(const std::string& text,
                                                      const std::string& name);

}  // namespace rensa::detail

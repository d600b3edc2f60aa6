// RawKernel and RawModule: CUDA C++ of the user's, compiled when the program runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rensa/device/runtime_kernel.h"
#include "rensa/kernel/kernel_input.h"

namespace rensa {

/// CUDA C++ by NVRTC, compiled for a GPU at the first use there and kept on disk
/// ($RENSA_KERNEL_CACHE). The headers "rensa/core/half.h" (float16 and bfloat16) and
/// "rensa/core/functors.h" may be included; the toolkit's need an option, "-I...".
class RawModule {
 public:
  struct Options {
    std::vector<std::string> options;           // NVRTC's; the architecture and C++17 are given
    std::vector<std::string> name_expressions;  // "f<float>": templates that get_function finds
  };
  explicit RawModule(std::string code);
  RawModule(std::string code, Options options);

  /// The kernel of that name (extern "C") or name expression.
  class RawKernel get_function(const std::string& name) const;

 private:
  friend class RawKernel;
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

/// CuPy's RawKernel:
///   RawKernel add(source, "my_add");
///   add({(n + 255) / 256}, {256}, x, y, out, n);
/// An array goes as the address of its first element, a number as it is typed: what the kernel
/// declares must agree. Runs on the device of its arrays, on the current stream, and may be
/// recorded by capture(). Which arrays are written is not known: all count as both.
class RawKernel {
 public:
  RawKernel(std::string code, const std::string& name);
  RawKernel(std::string code, const std::string& name, RawModule::Options options);

  template <class... A> void operator()(Dim3 grid, Dim3 block, const A&... arguments) const {
    launch(grid, block, {KernelInput(arguments)...}, 0);
  }
  /// Throws ValueError without an array and for an empty grid or block, DeviceError for arrays of
  /// two devices or on the CPU, CompileError at the first use, CudaError.
  void launch(Dim3 grid, Dim3 block, const std::vector<KernelInput>& arguments,
              unsigned shared_bytes) const;

 private:
  friend class RawModule;
  RawKernel(RawModule module, const std::string& name);
  RawModule module_;
  const char* name_;  // kept for good
};

}  // namespace rensa

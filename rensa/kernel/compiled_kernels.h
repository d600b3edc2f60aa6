// The compiled functions of one generated kernel, by layout and device.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "rensa/core/once_per_key.h"
#include "rensa/kernel/compiler.h"

namespace rensa::detail {

struct CompiledKernel {
  std::shared_ptr<const cuda::GpuModule> module;
  const void* function = nullptr;
  operations::RuntimeKernel::HostFunction host = nullptr;
};

class CompiledKernels {
 public:
  /// What `source()` was compiled to for `layout` and the device; `function` is its name in it,
  /// `options` are NVRTC's. Throws CompileError, NotImplementedError, CudaError.
  template <class Source>
  CompiledKernel get(const std::string& layout, Device device, const std::string& function,
                     const std::vector<std::string>& options, Source&& source) {
    return compiled_.get({layout, device.is_cpu() ? -1 : device.index}, [&] {
      CompiledKernel made;
      if (device.is_cpu()) {
        made.host = host_function(source(), function);
      } else {
        std::vector<std::string> all{"-fmad=false"};  // rounds as the library's own kernels do
        all.insert(all.end(), options.begin(), options.end());
        made.module = gpu_module({source(), function, std::move(all), {}}, device);
        made.function = made.module->function(function);
      }
      return made;
    });
  }

 private:
  OncePerKey<std::pair<std::string, int>, CompiledKernel> compiled_;  // by layout and GPU, -1: host
};

}  // namespace rensa::detail

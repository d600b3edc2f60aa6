// RawModule and RawKernel.
#include "rensa/kernel/raw_kernel.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <utility>

#include "rensa/core/error.h"
#include "rensa/device/launcher.h"
#include "rensa/kernel/compiler.h"

namespace rensa {

struct RawModule::Impl {
  Impl(std::string c, Options o) : code(std::move(c)), options(std::move(o)) {}

  struct Loaded {
    std::shared_ptr<const cuda::GpuModule> module;
    std::map<const char*, const void*> functions;  // by kept name
  };

  /// Sets the kernel's module and function.
  void find(RuntimeKernel& kernel, const char* name, Device device) const {
    std::lock_guard<std::mutex> hold(mutex);
    Loaded& on_gpu = loaded[device.index];
    if (!on_gpu.module) {
      on_gpu.module = detail::gpu_module(
          {code, "kernel.cu", options.options, options.name_expressions}, device);
    }
    const void*& function = on_gpu.functions[name];
    if (!function) function = on_gpu.module->function(name);
    kernel.module = on_gpu.module;
    kernel.function = function;
  }

  const std::string code;
  const Options options;
  mutable std::mutex mutex;
  mutable std::map<int, Loaded> loaded;  // by GPU
};

RawModule::RawModule(std::string code) : RawModule(std::move(code), Options{}) {}

RawModule::RawModule(std::string code, Options options)
    : impl_(std::make_shared<Impl>(std::move(code), std::move(options))) {}

RawKernel RawModule::get_function(const std::string& name) const { return RawKernel(*this, name); }

RawKernel::RawKernel(std::string code, const std::string& name)
    : RawKernel(RawModule(std::move(code)), name) {}

RawKernel::RawKernel(std::string code, const std::string& name, RawModule::Options options)
    : RawKernel(RawModule(std::move(code), std::move(options)), name) {}

RawKernel::RawKernel(RawModule module, const std::string& name)
    : module_(std::move(module)), name_(keep_name(name)) {}

void RawKernel::launch(Dim3 grid, Dim3 block, const std::vector<KernelInput>& arguments,
                       unsigned shared_bytes) const {
  for (unsigned extent : {grid.x, grid.y, grid.z, block.x, block.y, block.z}) {
    if (extent == 0) {
      throw ValueError(
          fmt::format("{}: a grid of ({}, {}, {}) and blocks of ({}, {}, {}) have no "
                      "threads",
                      name_, grid.x, grid.y, grid.z, block.x, block.y, block.z));
    }
  }
  RuntimeKernel kernel(name_);
  const Array* first = nullptr;
  for (const KernelInput& input : arguments) {
    KernelArgument argument;
    if (input.is_array()) {
      if (first) check_same_device(name_, *first, input.array());
      first = &input.array();
      argument.bytes.resize(sizeof(void*));
      argument.pointers.push_back({0, true, input.array().operand()});
    } else {
      argument.bytes.assign(input.bytes(), input.bytes() + input.size());
    }
    kernel.arguments.push_back(std::move(argument));
  }
  if (!first) {
    throw ValueError(std::string(name_) +
                     ": a RawKernel runs on the device of its arrays; it was given none");
  }
  Device device = first->device();
  if (device.is_cpu()) {
    throw DeviceError(std::string(name_) +
                      ": a RawKernel runs on a GPU and its arrays are on the CPU; move them "
                      "with .to(gpu(0))");
  }
  module_.impl_->find(kernel, name_, device);
  kernel.grid = grid;
  kernel.block = block;
  kernel.shared_bytes = shared_bytes;
  constexpr unsigned kAlwaysAllowed = 48 << 10;
  if (shared_bytes > kAlwaysAllowed) {
    kernel.module->allow_shared_bytes(kernel.function, device, shared_bytes);
  }
  rensa::launch(kernel);
}

}  // namespace rensa

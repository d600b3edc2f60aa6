// RawModule and RawKernel.
#include "rensa/kernel/raw_kernel.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

#include "rensa/array/exchange.h"
#include "rensa/core/error.h"
#include "rensa/core/once_per_key.h"
#include "rensa/device/devices.h"
#include "rensa/device/launcher.h"
#include "rensa/kernel/compiler.h"
#include "rensa/operations/runtime_kernel/runtime_kernel.h"

namespace rensa {

namespace {

struct Found {
  std::shared_ptr<const cuda::GpuModule> module;
  const void* function = nullptr;
};

/// Whether the driver may know what to do with it: a cubin, a fat binary or PTX.
bool is_gpu_code(const std::string& bytes) {
  constexpr std::string_view kElf = "\177ELF", kFat = "\x50\xed\x55\xba";
  constexpr unsigned char kCuda = 190;  // the machine of an ELF header
  if (bytes.starts_with(kElf)) {
    return bytes.size() > 18 && static_cast<unsigned char>(bytes[18]) == kCuda;
  }
  return bytes.starts_with(kFat) ||
         (bytes.find(".version") != std::string::npos &&
          bytes.find(".target") != std::string::npos && bytes.find('\0') == std::string::npos);
}

}  // namespace

struct RawModule::Impl {
  Impl(std::string c, Options o) : code(std::move(c)), options(std::move(o)) {}

  std::shared_ptr<const cuda::GpuModule> module(Device device) const {
    check_device(device);
    if (device.is_cpu()) {
      throw DeviceError("RawModule: cpu is no GPU; name one with gpu(i)");
    }
    return modules.get(device.index, [&] {
      if (from_file) return std::make_shared<const cuda::GpuModule>(cuda::GpuCode{code, {}});
      return detail::gpu_module({code, "kernel.cu", options.options, options.name_expressions},
                                device);
    });
  }

  Found find(const char* name, Device device) const {
    return functions.get({name, device.index}, [&] {
      auto its_module = module(device);
      return Found{its_module, its_module->function(name)};
    });
  }

  const std::string code;
  const Options options;
  bool from_file = false;
  mutable OncePerKey<int, std::shared_ptr<const cuda::GpuModule>> modules;  // by GPU
  mutable OncePerKey<std::pair<const char*, int>, Found> functions;         // by kept name, GPU
};

RawModule::RawModule(std::string code) : RawModule(std::move(code), Options{}) {}

RawModule::RawModule(std::string code, Options options)
    : impl_(std::make_shared<Impl>(std::move(code), std::move(options))) {}

RawModule::RawModule(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

RawModule RawModule::from_file(const std::string& path) { return from_file(path, Options{}); }

RawModule RawModule::from_file(const std::string& path, Options options) {
  if (!options.options.empty() || !options.name_expressions.empty()) {
    throw ValueError(path + ": a compiled module takes no compiler's options and name expressions");
  }
  std::error_code failed;
  std::ifstream file(path, std::ios::binary);
  std::string bytes;
  if (std::filesystem::is_regular_file(path, failed)) {
    bytes.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  if (!file || !is_gpu_code(bytes)) {
    throw SerializationError(fmt::format(
        "RawModule: {} {}", path,
        bytes.empty() ? "cannot be read; is it a file?"
                      : "is no cubin, fatbin or PTX (an nvcc -cubin or -ptx makes one)"));
  }
  auto impl = std::make_shared<Impl>(std::move(bytes), std::move(options));
  impl->from_file = true;
  return RawModule(std::move(impl));
}

RawKernel RawModule::get_function(const std::string& name) const { return RawKernel(*this, name); }

Array RawModule::get_global(const std::string& name, Dtype dtype) const {
  return get_global(name, dtype, current_gpu());
}

Array RawModule::get_global(const std::string& name, Dtype dtype, Device device) const {
  auto module = impl_->module(device);
  cuda::GpuModule::Global global = module->global(name, device);
  if (global.nbytes % itemsize(dtype) != 0) {
    throw ValueError(fmt::format("get_global: {} has {} bytes, which are no whole elements of {}",
                                 name, global.nbytes, dtype_name(dtype)));
  }
  auto owner = std::make_shared<std::shared_ptr<const cuda::GpuModule>>(module);
  return xp::wrap(global.data, {global.nbytes / itemsize(dtype)}, dtype, device, owner);
}

RawKernel::RawKernel(std::string code, const std::string& name)
    : RawKernel(RawModule(std::move(code)), name) {}

RawKernel::RawKernel(std::string code, const std::string& name, RawModule::Options options)
    : RawKernel(RawModule(std::move(code), std::move(options)), name) {}

RawKernel::RawKernel(RawModule module, const std::string& name)
    : module_(std::move(module)), name_(operations::keep_name(name)) {}

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
  operations::RuntimeKernel kernel(name_);
  const Array* first = nullptr;
  for (const KernelInput& input : arguments) {
    operations::KernelArgument argument;
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
  Found found = module_.impl_->find(name_, device);
  kernel.module = found.module;
  kernel.function = found.function;
  if (module_.impl_->options.enable_cooperative_groups) {
    kernel.start = operations::RuntimeKernel::Start::together;
  }
  kernel.grid = grid;
  kernel.block = block;
  kernel.shared_bytes = shared_bytes;
  constexpr unsigned kAlwaysAllowed = 48 << 10;
  if (shared_bytes > kAlwaysAllowed) {
    kernel.module->allow_shared_bytes(kernel.function, device, shared_bytes);
  }
  rensa::launch(kernel);
}

cuda::KernelAttributes RawKernel::attributes() const { return attributes(current_gpu()); }

cuda::KernelAttributes RawKernel::attributes(Device device) const {
  Found found = module_.impl_->find(name_, device);
  return found.module->attributes(found.function, device);
}

void RawKernel::set_max_dynamic_shared_size_bytes(int bytes) const {
  set_max_dynamic_shared_size_bytes(bytes, current_gpu());
}

void RawKernel::set_max_dynamic_shared_size_bytes(int bytes, Device device) const {
  if (bytes < 0) throw ValueError(fmt::format("{}: {} bytes of shared memory", name_, bytes));
  Found found = module_.impl_->find(name_, device);
  found.module->set_shared_bytes(found.function, device, static_cast<unsigned>(bytes));
}

void RawKernel::set_preferred_shared_memory_carveout(int percent) const {
  set_preferred_shared_memory_carveout(percent, current_gpu());
}

void RawKernel::set_preferred_shared_memory_carveout(int percent, Device device) const {
  if (percent < -1 || percent > 100) {
    throw ValueError(
        fmt::format("{}: a carveout is -1 or 0 to 100 percent, not {}", name_, percent));
  }
  Found found = module_.impl_->find(name_, device);
  found.module->set_attribute(found.function, device,
                              cuda::KernelAttribute::preferred_shared_memory_carveout, percent);
}

int RawKernel::max_active_blocks(int threads, unsigned shared_bytes) const {
  return max_active_blocks(threads, shared_bytes, current_gpu());
}

int RawKernel::max_active_blocks(int threads, unsigned shared_bytes, Device device) const {
  if (threads < 1) throw ValueError(fmt::format("{}: blocks of {} threads", name_, threads));
  Found found = module_.impl_->find(name_, device);
  return found.module->max_active_blocks(found.function, device, threads, shared_bytes);
}

}  // namespace rensa

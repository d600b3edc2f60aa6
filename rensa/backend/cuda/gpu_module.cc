// Kernels compiled at run time: NVRTC, and the driver's modules.
#include "rensa/device/gpu_module.h"

#include <cuda_runtime.h>
#include <fmt/format.h>
#include <nvrtc.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>

#include "rensa/backend/cuda/check.h"
#include "rensa/backend/cuda/driver.h"
#include "rensa/backend/cuda/library.h"
#include "rensa/core/error.h"
#include "rensa/device/cuda_runtime.h"
#include "rensa/device/kernel_headers.h"

namespace rensa {

namespace cuda {

namespace {

// --- NVRTC ---

struct Nvrtc {
  decltype(&::nvrtcVersion) version;
  decltype(&::nvrtcCreateProgram) create;
  decltype(&::nvrtcDestroyProgram) destroy;
  decltype(&::nvrtcAddNameExpression) add_name;
  decltype(&::nvrtcCompileProgram) compile;
  decltype(&::nvrtcGetLoweredName) lowered_name;
  decltype(&::nvrtcGetProgramLogSize) log_size;
  decltype(&::nvrtcGetProgramLog) log;
  decltype(&::nvrtcGetCUBINSize) cubin_size;
  decltype(&::nvrtcGetCUBIN) cubin;
  decltype(&::nvrtcGetErrorString) error_string;
};

const Nvrtc& nvrtc() {
  static const Nvrtc table = [] {
    Library library(nvrtc_source());
    Nvrtc t;
    library.bind("nvrtcVersion", t.version);
    library.bind("nvrtcCreateProgram", t.create);
    library.bind("nvrtcDestroyProgram", t.destroy);
    library.bind("nvrtcAddNameExpression", t.add_name);
    library.bind("nvrtcCompileProgram", t.compile);
    library.bind("nvrtcGetLoweredName", t.lowered_name);
    library.bind("nvrtcGetProgramLogSize", t.log_size);
    library.bind("nvrtcGetProgramLog", t.log);
    library.bind("nvrtcGetCUBINSize", t.cubin_size);
    library.bind("nvrtcGetCUBIN", t.cubin);
    library.bind("nvrtcGetErrorString", t.error_string);
    return t;
  }();
  return table;
}

void check_nvrtc(const char* what, nvrtcResult result) {
  if (result == NVRTC_SUCCESS) return;
  throw CudaError(fmt::format("{} says {}", what, nvrtc().error_string(result)));
}

class Program {
 public:
  explicit Program(const GpuSource& source) {
    std::vector<const char*> names, texts;
    for (int i = 0; i < kNumKernelHeaders; ++i) {
      names.push_back(kKernelHeaders[i].name);
      texts.push_back(kKernelHeaders[i].text);
    }
    check_nvrtc("nvrtcCreateProgram",
                nvrtc().create(&program_, source.text.c_str(), source.name.c_str(),
                               kNumKernelHeaders, texts.data(), names.data()));
  }
  ~Program() { nvrtc().destroy(&program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  nvrtcProgram get() const { return program_; }

  std::string log() const {
    std::size_t size = 0;
    if (nvrtc().log_size(program_, &size) != NVRTC_SUCCESS || size == 0) return {};
    std::string text(size, '\0');
    if (nvrtc().log(program_, text.data()) != NVRTC_SUCCESS) return {};
    text.resize(size - 1);  // its end mark
    return text;
  }

 private:
  nvrtcProgram program_ = nullptr;
};

}  // namespace

GpuCode compile_gpu_code(const GpuSource& source, int architecture) {
  Program program(source);
  for (const std::string& name : source.name_expressions) {
    check_nvrtc("nvrtcAddNameExpression", nvrtc().add_name(program.get(), name.c_str()));
  }
  std::string target = fmt::format("--gpu-architecture=sm_{}", architecture);
  std::vector<const char*> options{target.c_str(), "--std=c++17"};
  for (const std::string& option : source.options) options.push_back(option.c_str());
  nvrtcResult result =
      nvrtc().compile(program.get(), static_cast<int>(options.size()), options.data());
  if (result != NVRTC_SUCCESS) {
    std::string log = program.log();
    throw CompileError(fmt::format("{}: NVRTC {} does not compile it for sm_{}: {}", source.name,
                                   nvrtc_version(), architecture,
                                   log.empty() ? nvrtc().error_string(result) : "\n" + log));
  }
  GpuCode code;
  std::size_t size = 0;
  check_nvrtc("nvrtcGetCUBINSize", nvrtc().cubin_size(program.get(), &size));
  code.image.resize(size);
  check_nvrtc("nvrtcGetCUBIN", nvrtc().cubin(program.get(), code.image.data()));
  for (const std::string& name : source.name_expressions) {
    const char* lowered = nullptr;
    check_nvrtc("nvrtcGetLoweredName", nvrtc().lowered_name(program.get(), name.c_str(), &lowered));
    code.names.emplace_back(name, lowered);
  }
  return code;
}

std::string nvrtc_version() {
  int major = 0, minor = 0;
  check_nvrtc("nvrtcVersion", nvrtc().version(&major, &minor));
  return fmt::format("{}.{}", major, minor);
}

int architecture(Device device) {
  static std::array<std::atomic<int>, kMaxGpus> known{};  // 0: not asked for yet
  auto& value = known.at(static_cast<std::size_t>(device.index));
  int result = value.load(std::memory_order_relaxed);
  if (result > 0) return result;
  int major = 0, minor = 0;
  RENSA_CUDA_CALL(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device.index));
  RENSA_CUDA_CALL(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device.index));
  value.store(result = 10 * major + minor, std::memory_order_relaxed);
  return result;
}

// --- the driver ---

namespace {

template <class F> void bind_driver(const char* symbol, F*& function) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  cudaError_t error =
      cudaGetDriverEntryPointByVersion(symbol, &address, 12000, cudaEnableDefault, &found);
#else
  cudaError_t error = cudaGetDriverEntryPoint(symbol, &address, cudaEnableDefault, &found);
#endif
  if (error != cudaSuccess || found != cudaDriverEntryPointSuccess || !address) {
    (void)cudaGetLastError();
    throw CudaError(fmt::format(
        "the CUDA driver has no {}: kernels compiled at run time need one of CUDA 12 or newer",
        symbol));
  }
  function = reinterpret_cast<F*>(address);
}

void check_driver(const std::string& what, CUresult result) {
  if (result == CUDA_SUCCESS) return;
  throw CudaError(fmt::format("{}: the CUDA driver says {}", what, driver_error_text(result)));
}

}  // namespace

const Driver& driver() {
  static const Driver table = [] {
    Driver t;
    bind_driver("cuLibraryLoadData", t.library_load_data);
    bind_driver("cuLibraryGetKernel", t.library_get_kernel);
    bind_driver("cuLibraryGetGlobal", t.library_get_global);
    bind_driver("cuKernelGetAttribute", t.kernel_get_attribute);
    bind_driver("cuKernelSetAttribute", t.kernel_set_attribute);
    bind_driver("cuLaunchKernelEx", t.launch_kernel);
    bind_driver("cuOccupancyMaxActiveBlocksPerMultiprocessor", t.max_active_blocks);
    bind_driver("cuMemGetAddressRange", t.mem_get_address_range);
    bind_driver("cuTensorMapEncodeTiled", t.tensor_map_encode);
    bind_driver("cuGetErrorString", t.error_string);
    return t;
  }();
  return table;
}

const char* driver_error_text(CUresult result) {
  const char* text = nullptr;
  return driver().error_string(result, &text) == CUDA_SUCCESS && text ? text : "an unknown error";
}

struct GpuModule::Impl {
  std::string image;  // the driver reads it as it loads kernels
  std::vector<std::pair<std::string, std::string>> names;
  CUlibrary library = nullptr;
  std::mutex limits;  // held while a kernel's limit is asked for and raised

  /// What `name` is called in the image.
  const std::string& symbol(const std::string& name) const {
    auto known = std::find_if(names.begin(), names.end(),
                              [&](const auto& pair) { return pair.first == name; });
    return known == names.end() ? name : known->second;
  }
};

namespace {

CUkernel as_kernel(const void* function) {
  return static_cast<CUkernel>(const_cast<void*>(function));
}

int kernel_attribute(const void* function, Device device, CUfunction_attribute which) {
  int value = 0;
  check_driver("attributes of a kernel",
               driver().kernel_get_attribute(&value, which, as_kernel(function), device.index));
  return value;
}

}  // namespace

GpuModule::GpuModule(const GpuCode& code) : impl_(std::make_unique<Impl>()) {
  impl_->image = code.image;
  impl_->names = code.names;
  // PTX is compiled by the driver, which says here what is wrong with it.
  std::string log(4096, '\0');
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
  CUresult result = driver().library_load_data(&impl_->library, impl_->image.c_str(), options,
                                               values, 2, nullptr, nullptr, 0);
  log.resize(std::min(log.find('\0'), log.size()));
  check_driver("loading a kernel" + (log.empty() ? log : ": " + log), result);
}

GpuModule::~GpuModule() = default;

const void* GpuModule::function(const std::string& name) const {
  CUkernel kernel = nullptr;
  CUresult result =
      driver().library_get_kernel(&kernel, impl_->library, impl_->symbol(name).c_str());
  if (result == CUDA_ERROR_NOT_FOUND) {
    throw ValueError(fmt::format(
        "{}: the module has no kernel of that name; declare it extern \"C\" __global__, or give "
        "templates as name expressions",
        name));
  }
  check_driver(name, result);
  return kernel;
}

KernelAttributes GpuModule::attributes(const void* function, Device device) const {
  auto get = [&](CUfunction_attribute which) { return kernel_attribute(function, device, which); };
  KernelAttributes a;
  a.max_threads_per_block = get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  a.num_regs = get(CU_FUNC_ATTRIBUTE_NUM_REGS);
  a.shared_size_bytes = get(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  a.const_size_bytes = get(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
  a.local_size_bytes = get(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  a.ptx_version = get(CU_FUNC_ATTRIBUTE_PTX_VERSION);
  a.binary_version = get(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
  a.cache_mode_ca = get(CU_FUNC_ATTRIBUTE_CACHE_MODE_CA);
  a.max_dynamic_shared_size_bytes = get(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  a.preferred_shared_memory_carveout = get(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
  return a;
}

void GpuModule::set_attribute(const void* function, Device device, KernelAttribute which,
                              int value) const {
  bool bytes = which == KernelAttribute::max_dynamic_shared_size_bytes;
  check_driver(
      fmt::format("setting {} to {}",
                  bytes ? "max_dynamic_shared_size_bytes" : "preferred_shared_memory_carveout",
                  value),
      driver().kernel_set_attribute(bytes ? CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                                          : CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                    value, as_kernel(function), device.index));
}

void GpuModule::allow_shared_bytes(const void* function, Device device, unsigned bytes) const {
  std::lock_guard lock(impl_->limits);
  int allowed = kernel_attribute(function, device, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  if (static_cast<unsigned>(allowed) < bytes) set_shared_bytes(function, device, bytes);
}

void GpuModule::set_shared_bytes(const void* function, Device device, unsigned bytes) const {
  int most = 0;
  RENSA_CUDA_CALL(
      cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device.index));
  if (bytes > static_cast<unsigned>(most)) {
    throw ValueError(fmt::format("a kernel asks for {} bytes of shared memory, {} gives a block {}",
                                 bytes, device.str(), most));
  }
  set_attribute(function, device, KernelAttribute::max_dynamic_shared_size_bytes,
                static_cast<int>(bytes));
}

int GpuModule::max_active_blocks(const void* function, Device device, int threads,
                                 unsigned bytes) const {
  runtime::set_device(device);  // the driver takes a kernel for a function of the current context
  int blocks = 0;
  check_driver("max_active_blocks",
               driver().max_active_blocks(
                   &blocks, reinterpret_cast<CUfunction>(as_kernel(function)), threads, bytes));
  return blocks;
}

GpuModule::Global GpuModule::global(const std::string& name, Device device) const {
  runtime::set_device(device);
  CUdeviceptr data = 0;
  std::size_t nbytes = 0;
  CUresult result =
      driver().library_get_global(&data, &nbytes, impl_->library, impl_->symbol(name).c_str());
  if (result == CUDA_ERROR_NOT_FOUND) {
    throw ValueError(fmt::format(
        "{}: the module has no variable of that name; declare it extern \"C\", or give the name "
        "expression \"&{}\"",
        name, name));
  }
  check_driver(name, result);
  return {reinterpret_cast<void*>(data), static_cast<std::int64_t>(nbytes)};
}

}  // namespace cuda

}  // namespace rensa

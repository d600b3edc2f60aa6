// Compiled kernels: by key in this process, on disk, and by the compilers.
#include "rensa/kernel/compiler.h"

#include <cstring>
#include <optional>
#include <vector>

#include "rensa/core/error.h"
#include "rensa/core/once_per_key.h"
#include "rensa/core/sha256.h"
#include "rensa/device/kernel_headers.h"
#include "rensa/kernel/host_compiler.h"
#include "rensa/kernel/kernel_cache.h"

namespace rensa::detail {

namespace {

// --- code as bytes ---

void put(std::string& bytes, const std::string& part) {
  bytes += std::to_string(part.size()) + ":" + part;
}

/// The reverse of put(). The cache has checked the bytes' hash, so they are ours.
std::string get(const std::string& bytes, std::size_t& at) {
  std::size_t colon = bytes.find(':', at);
  std::size_t size = std::stoull(bytes.substr(at, colon - at));
  at = colon + 1 + size;
  return bytes.substr(colon + 1, size);
}

std::string to_bytes(const cuda::GpuCode& code) {
  std::string bytes;
  put(bytes, code.image);
  for (const auto& [name, lowered] : code.names) put(bytes, name), put(bytes, lowered);
  return bytes;
}

cuda::GpuCode from_bytes(const std::string& bytes) {
  cuda::GpuCode code;
  std::size_t at = 0;
  code.image = get(bytes, at);
  while (at < bytes.size()) {
    std::string name = get(bytes, at), lowered = get(bytes, at);
    code.names.emplace_back(std::move(name), std::move(lowered));
  }
  return code;
}

/// The texts that kernels may include: another version of the library has others.
const std::string& headers() {
  static const std::string digest = [] {
    Sha256 hash;
    for (int i = 0; i < kNumKernelHeaders; ++i) {
      hash.update(kKernelHeaders[i].text, std::strlen(kKernelHeaders[i].text));
    }
    return hash.hex_digest();
  }();
  return digest;
}

/// The version of NVRTC; none where this machine has none.
std::optional<std::string> nvrtc() {
  try {
    return "NVRTC " + cuda::nvrtc_version();
  } catch (const CudaError&) {
    return std::nullopt;
  }
}

}  // namespace

std::shared_ptr<const cuda::GpuModule> gpu_module(const cuda::GpuSource& source, Device device) {
  using Module = std::shared_ptr<const cuda::GpuModule>;
  static auto& made = make_held_over_fork<OncePerKey<std::vector<std::string>, Module>>();
  int architecture = cuda::architecture(device);
  std::vector<std::string> key{"cuda", std::to_string(architecture), source.text, source.name};
  key.insert(key.end(), source.options.begin(), source.options.end());
  key.emplace_back("names");
  key.insert(key.end(), source.name_expressions.begin(), source.name_expressions.end());
  return made.get(key, [&] {
    Module module;
    std::vector<std::string> parts = key;
    parts.push_back(headers());
    with_kernel_code(
        {parts, nvrtc()},
        [&](const std::string& code) {
          module = std::make_shared<const cuda::GpuModule>(from_bytes(code));
        },
        [&] { return to_bytes(cuda::compile_gpu_code(source, architecture)); });
    return module;
  });
}

operations::RuntimeKernel::HostFunction host_function(const std::string& text,
                                                      const std::string& name) {
  using Function = operations::RuntimeKernel::HostFunction;
  static auto& made = make_held_over_fork<OncePerKey<std::vector<std::string>, Function>>();
  return made.get({text, name}, [&] {
    Function function = nullptr;
    std::optional<HostCompiler> compiler = find_host_compiler();
    KernelKey key{{"cpu", text, host_target(), headers()}, std::nullopt};
    if (compiler) key.compiler = compiler->path + "\n" + compiler->version;
    with_kernel_code(
        key, [&](const std::string& code) { function = load_host_function(code, name); },
        [&] {
          if (compiler) return compile_for_host(*compiler, text, name);
          throw NotImplementedError(
              name +
              ": a kernel for arrays on the CPU needs a C++ compiler; none of $CXX, c++, g++ and "
              "clang++ was found, nor the kernel in the cache of an earlier run. Install one, or "
              "move the arrays to a GPU");
        });
    return function;
  });
}

}  // namespace rensa::detail

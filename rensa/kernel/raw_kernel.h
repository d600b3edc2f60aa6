// RawKernel and RawModule: CUDA C++ of the user's, compiled when the program runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rensa/device/gpu_module.h"
#include "rensa/kernel/kernel_input.h"

namespace rensa {

class RawKernel;

/// CUDA C++ by NVRTC, compiled for a GPU at the first use there and kept on disk
/// ($RENSA_KERNEL_CACHE), or machine code from a file. The headers "rensa/core/half.h" (float16 and
/// bfloat16) and "rensa/core/functors.h" may be included; the toolkit's need an option, "-I...".
class RawModule {
 public:
  struct Options {
    std::vector<std::string> options = {};  // NVRTC's; the architecture and C++17 are given
    /// "f<float>": templates that get_function finds; "&v": variables for get_global.
    std::vector<std::string> name_expressions = {};
    /// Launches bring all blocks of a grid to the GPU at once, so that they may wait for each
    /// other.
    bool enable_cooperative_groups = false;
  };
  explicit RawModule(std::string code);
  RawModule(std::string code, Options options);
  /// The kernels of a .cubin, .fatbin or .ptx file, which is read now. Throws SerializationError
  /// for what is none of these or cannot be read, ValueError for options to a compiler that does
  /// not run; what the GPU does not take is a CudaError at the first use.
  static RawModule from_file(const std::string& path);
  static RawModule from_file(const std::string& path, Options options);

  /// The kernel of that name (extern "C") or name expression. Whether it is there shows at its
  /// first use.
  RawKernel get_function(const std::string& name) const;
  /// The __device__ or __constant__ variable of that name (extern "C") or name expression ("&v"),
  /// as it stands on `device` (the current GPU, or GPU 0, when left out): a one-dimensional array
  /// on its memory, which is that of all kernels of the module. Constants may be written by copies,
  /// a.set(host), not by kernels. Does not wait. Throws ValueError where there is none or its bytes
  /// are no whole elements, DeviceError, CompileError, CudaError.
  Array get_global(const std::string& name, Dtype dtype) const;
  Array get_global(const std::string& name, Dtype dtype, Device device) const;

 private:
  friend class RawKernel;
  struct Impl;
  explicit RawModule(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

/// CuPy's RawKernel:
///   RawKernel add(source, "my_add");
///   add({(n + 255) / 256}, {256}, x, y, out, n);
/// An array goes as the address of its first element; a number (complex and 16-bit ones too) or a
/// struct as its bytes: what the kernel declares must agree. Runs on the device of its arrays, on
/// the current stream, and may be recorded by capture(). Which arrays are written is not known: all
/// count as both.
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

  // On `device`, or the current GPU (GPU 0 where the CPU is current). They compile the kernel if
  // nobody has, and throw DeviceError without that GPU, else what launch() does.
  cuda::KernelAttributes attributes() const;
  cuda::KernelAttributes attributes(Device device) const;
  /// The dynamic shared memory that launches may ask for. launch() raises it by itself.
  void set_max_dynamic_shared_size_bytes(int bytes) const;
  void set_max_dynamic_shared_size_bytes(int bytes, Device device) const;
  /// How much of a multiprocessor's memory is to be shared memory and not cache, in percent; -1: as
  /// the driver likes. A hint.
  void set_preferred_shared_memory_carveout(int percent) const;
  void set_preferred_shared_memory_carveout(int percent, Device device) const;
  /// Blocks of `threads` threads, with so much dynamic shared memory, that a multiprocessor runs at
  /// once: a cooperative grid may have that many times the multiprocessors.
  int max_active_blocks(int threads, unsigned shared_bytes = 0) const;
  int max_active_blocks(int threads, unsigned shared_bytes, Device device) const;

  const char* name() const { return name_; }  // the constructor's

 private:
  friend class RawModule;
  RawKernel(RawModule module, const std::string& name);
  RawModule module_;
  const char* name_;  // kept for good
};

}  // namespace rensa

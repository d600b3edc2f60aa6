// GPU code that is compiled while the program runs, and loaded.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rensa/core/device.h"

namespace rensa {

/// The extents of a grid or a block of threads.
struct Dim3 {
  unsigned x = 1, y = 1, z = 1;  // each at least 1
};

namespace cuda {

/// CUDA C++ as NVRTC is given it.
struct GpuSource {
  std::string text;                           // the program
  std::string name;                           // what the compiler calls the file
  std::vector<std::string> options;           // besides the architecture
  std::vector<std::string> name_expressions;  // "f<float>": instantiated, and found by that name
};

/// Machine code for one architecture, and what the name expressions are called in it.
struct GpuCode {
  std::string image;                                       // what GpuModule takes
  std::vector<std::pair<std::string, std::string>> names;  // (expression, symbol)
};

/// Compiles by NVRTC for compute capability `architecture` (90 is 9.0); needs no GPU. The headers
/// of rensa/core that kernels may include are at hand as "rensa/core/half.h" and so on. Throws
/// CompileError with the compiler's log, CudaError where NVRTC is missing.
GpuCode compile_gpu_code(const GpuSource& source, int architecture);
/// The version of NVRTC, as "13.0".
std::string nvrtc_version();
/// The compute capability of a GPU: 90 is 9.0.
int architecture(Device device);

/// What the driver knows of a kernel on a GPU; the names are CUDA's.
struct KernelAttributes {
  int max_threads_per_block = 0;              // that a launch may have
  int num_regs = 0;                           // of a thread
  int shared_size_bytes = 0;                  // of a block, without what a launch adds
  int const_size_bytes = 0;                   // of the user's constants
  int local_size_bytes = 0;                   // of a thread
  int ptx_version = 0;                        // 75 is 7.5
  int binary_version = 0;                     // 90 is 9.0
  int cache_mode_ca = 0;                      // as CUDA has it
  int max_dynamic_shared_size_bytes = 0;      // what a launch may add
  int preferred_shared_memory_carveout = -1;  // percent of the shared memory; -1: as it likes
};
/// Those of KernelAttributes that can be set.
enum class KernelAttribute { max_dynamic_shared_size_bytes, preferred_shared_memory_carveout };

/// Loaded machine code, for every GPU of its architecture. The driver keeps it for good: work that
/// uses it may be queued, or part of a graph.
class GpuModule {
 public:
  /// The image is a cubin, a fat binary or PTX. Throws CudaError where the driver does not take it.
  explicit GpuModule(const GpuCode& code);
  ~GpuModule();
  GpuModule(const GpuModule&) = delete;
  GpuModule& operator=(const GpuModule&) = delete;

  /// The kernel of that name or name expression. Throws ValueError where there is none.
  const void* function(const std::string& name) const;
  /// Throws DeviceError, CudaError.
  KernelAttributes attributes(const void* function, Device device) const;
  /// Throws CudaError for a value that the device does not take.
  void set_attribute(const void* function, Device device, KernelAttribute which, int value) const;
  /// Lets launches of a kernel have that much dynamic shared memory on `device`. The first takes
  /// nothing from what they may have already, which another thread may be about to use. Both throw
  /// ValueError, CudaError.
  void allow_shared_bytes(const void* function, Device device, unsigned bytes) const;
  void set_shared_bytes(const void* function, Device device, unsigned bytes) const;
  /// Blocks of `threads` and so much dynamic shared memory that a multiprocessor runs at once.
  int max_active_blocks(const void* function, Device device, int threads, unsigned bytes) const;

  struct Global {
    void* data;           // on the device
    std::int64_t nbytes;  // its size
  };
  /// The __device__ or __constant__ variable of that name, or name expression ("&variable"), as it
  /// stands on `device`. Throws ValueError where there is none.
  Global global(const std::string& name, Device device) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cuda

}  // namespace rensa

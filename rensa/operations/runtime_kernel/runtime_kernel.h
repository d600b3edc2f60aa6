// RuntimeKernel: a function that was compiled while the program runs, with its arguments: what
// ElementwiseKernel, RawKernel and their like launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rensa/device/gpu_module.h"
#include "rensa/device/kind.h"

namespace rensa::operations {

/// A copy of `name` that is kept for good: operations carry their names as plain pointers, and may
/// outlive who made them.
const char* keep_name(const std::string& name);

/// One argument, by value. Where its bytes hold the address of an array's first element, that is
/// filled in when the kernel runs: a recording may have moved the array.
struct KernelArgument {
  struct Pointer {
    std::size_t offset;
    bool written;
    Operand array;
  };
  std::vector<std::byte> bytes;
  std::vector<Pointer> pointers;
};

/// Runs the GPU's function, or the host's over pieces of [0, size), and then of
/// [size, size + second_size), on all cores: it gets the addresses of its arguments.
struct RuntimeKernel final : KindOf<RuntimeKernel> {
  using HostFunction = void (*)(const void* const* arguments, long long begin, long long end);

  /// `name` from keep_name().
  explicit RuntimeKernel(const char* name) : KindOf(name) {}

  std::shared_ptr<const cuda::GpuModule> module;
  const void* function = nullptr;
  Dim3 grid, block;
  unsigned shared_bytes = 0;
  /// When its blocks come to a GPU's processors.
  enum class Start {
    apart,     // when the work before has ended
    early,     // while it ends: the kernel calls wait_for_previous() before it touches memory
    together,  // all at once, and may wait for each other (CUDA's cooperative launch)
  };
  Start start = Start::apart;
  HostFunction host_function = nullptr;
  std::int64_t size = 0, second_size = 0;
  std::int64_t grain = 16384;  // of `size`: what is worth waking a thread for
  std::vector<KernelArgument> arguments;
  /// Scratch for the call. Where there is some, its address and, on a GPU, that of the stream's
  /// semaphores are filled in at `scratch_offset` of the first argument.
  std::size_t scratch_bytes = 0, scratch_offset = 0;

  template <class V> void fields(V& v) {
    for (bool written : {false, true}) {
      for (KernelArgument& argument : arguments) {
        for (KernelArgument::Pointer& pointer : argument.pointers) {
          if (pointer.written != written) continue;
          written ? v.write(pointer.array) : v.read(pointer.array);
        }
      }
    }
  }
  /// What a kernel of the user's gets by value, and what it is launched with.
  void numbers(std::vector<std::int64_t>& bits) override;
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override { return scratch_bytes; }

 private:
  /// Fills in the addresses of arrays and scratch; gives those of the arguments.
  std::vector<void*> argument_addresses(void* scratch, void* semaphores);
};

}  // namespace rensa::operations

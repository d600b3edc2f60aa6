// ElementwiseKernel: the user's expression as one kernel, compiled when the program runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rensa/kernel/kernel_input.h"

namespace rensa {

/// CuPy's ElementwiseKernel:
///   ElementwiseKernel squared_diff("T x, T y", "T z", "z = (x - y) * (x - y)", "squared_diff");
///   Array z = squared_diff(a, b);
/// Arrays broadcast; a letter stands for one dtype, which the arrays give (a number takes it). In
/// the operation a parameter is its element, `i` the element's index in C order, `n` and
/// `_ind.size()` the number of elements. A `raw` parameter does not broadcast and is indexed,
/// `x[i]`. float16 and bfloat16 compute as float. C++17 for GPUs, by NVRTC; for arrays on the CPU,
/// C++20 by the machine's compiler. Compiled at the first call for dtypes and layouts, kept on disk
/// ($RENSA_KERNEL_CACHE). Nothing is contracted to fused multiply-adds.
class ElementwiseKernel {
 public:
  struct Options {
    std::string preamble;                   // in front of the kernel
    std::string loop_prep;                  // before a thread's loop over its elements
    std::string after_loop;                 // after it
    std::vector<std::string> options = {};  // NVRTC's, for arrays on a GPU
  };
  struct CallOptions {
    std::int64_t size = -1;  // elements, where no parameter that broadcasts says how many
  };

  /// Throws ValueError for parameters that cannot be read, and for names that the kernel has for
  /// other things.
  ElementwiseKernel(const std::string& in_params, const std::string& out_params,
                    const std::string& operation, const std::string& name = "kernel");
  ElementwiseKernel(const std::string& in_params, const std::string& out_params,
                    const std::string& operation, const std::string& name, Options options);

  /// The first output. The arguments are the inputs, and after them perhaps the outputs to write.
  /// Throws ShapeError, DtypeError, DeviceError, ValueError; CompileError at the first call.
  template <class... A> Array operator()(const A&... arguments) const {
    return call({KernelInput(arguments)...}, CallOptions{}).front();
  }
  /// All outputs.
  std::vector<Array> call(const std::vector<KernelInput>& arguments, CallOptions options) const;
  std::vector<Array> call(const std::vector<KernelInput>& arguments) const {
    return call(arguments, CallOptions{});
  }

  /// A warm-up: compiles and loads, or finds on disk, what a call with these arguments needs, and
  /// runs nothing; given outputs stay as they are. A call of such dtypes and layouts then starts at
  /// once. Throws what the call would throw. Does not wait for the device.
  void compile(const std::vector<KernelInput>& arguments, CallOptions options) const;
  void compile(const std::vector<KernelInput>& arguments) const {
    compile(arguments, CallOptions{});
  }

  const std::string& name() const;  // the constructor's
  /// The CUDA C++ of a call with these arguments, wherever they are; compiles nothing.
  std::string source(const std::vector<KernelInput>& arguments, CallOptions options) const;
  std::string source(const std::vector<KernelInput>& arguments) const {
    return source(arguments, CallOptions{});
  }

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace rensa

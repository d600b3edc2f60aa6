// ReductionKernel: the user's map, reduction and finish as one kernel, compiled when the program
// runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rensa/kernel/kernel_input.h"

namespace rensa {

/// How a ReductionKernel is called.
struct ReductionOptions {
  Axes axis = {};          // left out: all axes
  bool keepdims = false;   // reduced axes stay with extent 1
  Array out = {};          // what the first output is written to
  std::int64_t size = -1;  // elements, where no input that broadcasts says how many
};

/// CuPy's ReductionKernel:
///   ReductionKernel l2norm("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm");
///   Array n = l2norm(x, {.axis = 1});
/// `map` is an expression of the inputs' elements, `reduce` one of two mapped values a and b,
/// `post` statements that give the outputs from the reduced a. `identity` is what a reduction of
/// nothing starts from; where it is empty, that throws. What is reduced in is `reduce_type`, the
/// first output's dtype unless said (float for float16 and bfloat16): a NumPy name, a letter of the
/// parameters, or a type of the preamble of at most 64 bytes with a trivial default constructor
/// that can be copied as bytes.
///
/// Inputs broadcast; a letter stands for one dtype, which the arrays give. In `map`, `i` is the
/// output's index, `_J` the position among the reduced elements and `_j` = i + _J *
/// _out_ind.size(), all in C order; `_in_ind.size()` and `_out_ind.size()` are the numbers of
/// elements and of outputs. A `raw` input does not broadcast and is indexed, `x[i]`. `reduce` has
/// to be associative and commutative; the order of the reduction follows from shapes and strides
/// alone, so results repeat. Compiled as ElementwiseKernel is.
class ReductionKernel {
 public:
  struct Options {
    std::string reduce_type;
    std::vector<std::string> options;  // NVRTC's
    std::string preamble;              // in front of the kernel
  };

  /// Throws ValueError for parameters that cannot be read, and for names that the kernel has for
  /// other things.
  ReductionKernel(const std::string& in_params, const std::string& out_params,
                  const std::string& map, const std::string& reduce, const std::string& post,
                  const std::string& identity, const std::string& name = "reduction");
  ReductionKernel(const std::string& in_params, const std::string& out_params,
                  const std::string& map, const std::string& reduce, const std::string& post,
                  const std::string& identity, const std::string& name, Options options);

  /// The first output. Throws ShapeError, DtypeError, DeviceError, ValueError, IndexError;
  /// CompileError at the first call.
  Array operator()(const KernelInput& a, const ReductionOptions& options = {}) const;
  Array operator()(const KernelInput& a, const KernelInput& b,
                   const ReductionOptions& options = {}) const;
  Array operator()(const KernelInput& a, const KernelInput& b, const KernelInput& c,
                   const ReductionOptions& options = {}) const;
  /// All outputs, of any number of inputs.
  std::vector<Array> call(const std::vector<KernelInput>& inputs,
                          const ReductionOptions& options) const;

  /// A warm-up, as ElementwiseKernel::compile.
  void compile(const std::vector<KernelInput>& inputs, const ReductionOptions& options = {}) const;

  const std::string& name() const;  // the constructor's
  /// The CUDA C++ of a call with these inputs, wherever they are; compiles nothing.
  std::string source(const std::vector<KernelInput>& inputs, const ReductionOptions& options) const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace rensa

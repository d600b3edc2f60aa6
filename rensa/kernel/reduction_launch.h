// The launch of a reduction kernel: how it is spread over a device, its function compiled, its
// arguments packed.
#pragma once

#include <vector>

#include "rensa/kernel/compiled_kernels.h"
#include "rensa/kernel/reduction_source.h"
#include "rensa/portable/launch_plan.h"

namespace rensa::detail {

/// How a reduction is run.
struct ReductionPlan {
  ReductionLayout layout;
  cuda::ReduceBlocks blocks;  // of a GPU
  host::ReduceParts parts;
  std::int64_t width = 1;  // with columns: of one outer index
  Shape kept_extents, reduced_extents;
  std::vector<Shape> kept, reduced;  // strides of each operand
  std::vector<std::int64_t> along;   // with columns: from column to column
  std::int64_t second_items = 0;     // of the host: what joins parts
  std::int64_t partials = 0, acc_bytes = 16;
};

/// `operands` in the order of the signature: elements broadcast to `shape`, which is reduced over
/// the axes whose bit in `axes` is set; kept ones have its shape with these at extent 1 (or stride
/// 0).
ReductionPlan plan_reduction(const ReductionText& text, const std::vector<KernelOperand>& operands,
                             const Shape& shape, unsigned axes, bool host);

/// The kernel, compiled and with its arguments; the outputs must have elements. `kept_name` is from
/// keep_name(). Throws CompileError, NotImplementedError, CudaError.
operations::RuntimeKernel make_reduction(const ReductionText& text, CompiledKernels& compiled,
                                         const char* kept_name,
                                         const std::vector<KernelOperand>& operands,
                                         const Shape& shape, unsigned axes, Device device);
/// Runs it.
void launch_reduction(const ReductionText& text, CompiledKernels& compiled, const char* kept_name,
                      const std::vector<KernelOperand>& operands, const Shape& shape, unsigned axes,
                      Device device);

}  // namespace rensa::detail

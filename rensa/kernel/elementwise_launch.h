// The launch of an elementwise kernel: its layout found, its function compiled, its arguments
// packed.
#pragma once

#include <vector>

#include "rensa/kernel/compiled_kernels.h"
#include "rensa/kernel/elementwise_source.h"

namespace rensa::detail {

/// The layout of a call over `shape`; elements broadcast to it. `views` are left as the loop sees
/// them: broadcast, with merged axes of `extents`.
ElementwiseLayout find_layout(const std::vector<KernelOperand>& operands, const Shape& shape,
                              bool host, std::vector<ArrayView>* views, Shape* extents);

/// The kernel over `shape`, which has elements, compiled and with its arguments. `kept_name` is
/// from keep_name(). Throws CompileError, NotImplementedError, CudaError.
operations::RuntimeKernel make_elementwise(const ElementwiseText& text, CompiledKernels& compiled,
                                           const char* kept_name,
                                           const std::vector<KernelOperand>& operands,
                                           const Shape& shape, Device device);
/// Runs it.
void launch_elementwise(const ElementwiseText& text, CompiledKernels& compiled,
                        const char* kept_name, const std::vector<KernelOperand>& operands,
                        const Shape& shape, Device device);

}  // namespace rensa::detail

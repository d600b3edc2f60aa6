// Elementwise operations on a GPU: the choice between copies, the vector kernel, the one for mixed
// dtypes and the generic one.
#include "rensa/operations/elementwise/cuda_kernels.cuh"

#include <span>
#include <string>

#include "rensa/backend/cuda/convert.h"
#include "rensa/backend/cuda/copy.h"
#include "rensa/core/error.h"
#include "rensa/operations/elementwise/cuda_mixed.h"
#include "rensa/operations/elementwise/elementwise.h"

namespace rensa::cuda {

#define RENSA_INTERNAL(name, inputs, rule, expression) RENSA_UFUNC(name, inputs, rule, expression)

namespace elementwise_rows {
#define RENSA_UFUNC(name, inputs, rule, expression) extern const ElementwiseKernels name;
#include "rensa/core/ops.def"
#undef RENSA_UFUNC
}  // namespace elementwise_rows

namespace {

using operations::Elementwise;

const ElementwiseKernels* const kKernels[] = {
#define RENSA_UFUNC(name, inputs, rule, expression) &elementwise_rows::name,
#include "rensa/core/ops.def"
#undef RENSA_UFUNC
#undef RENSA_INTERNAL
};
const ElementwiseKernels& kernels_of(Ufunc f) { return *kKernels[f.number()]; }

// One call's operands after broadcasting, axes in order and merged. view[0] is the output; inputs
// that are numbers have no data.
struct Operands {
  int num_inputs;
  ArrayView view[4];
};

void normalize(Operands& operands) {
  ArrayView* present[4] = {&operands.view[0]};
  int count = 1;
  for (int k = 1; k <= operands.num_inputs; ++k) {
    if (operands.view[k].data) present[count++] = &operands.view[k];
  }
  normalize_axes(present, count);
  keep_an_axis(present, count);
}

// Whether the vector kernel over `width` elements of `type` takes the operands.
bool takes_vectors(const Elementwise& op, const Operands& operands, Dtype out_dtype, int width) {
  const ArrayView& out = operands.view[0];
  int last = out.ndim() - 1;
  if (out.dtype != out_dtype || (last > 0 && out.shape[last] % width != 0)) return false;
  for (int k = 0; k <= operands.num_inputs; ++k) {
    const ArrayView& view = operands.view[k];
    if (!view.data) continue;
    bool condition = k == 1 && op.ufunc == ufunc::where;
    if (k > 0 && view.dtype != (condition ? bool_ : op.compute)) return false;
    if (k > 0 && view.strides[last] == 0) continue;  // one element along the last axis
    if (view.strides[last] != itemsize(view.dtype)) return false;
  }
  return true;
}

void fill_indexer(ElementwiseArgs& args, const Operands& operands, int width) {
  const Shape& shape = operands.view[0].shape;
  int last = shape.ndim() - 1;
  for (int axis = 0; axis <= last; ++axis) {
    std::int64_t strides[4] = {};
    for (int k = 0; k <= operands.num_inputs; ++k) {
      if (operands.view[k].data) {
        strides[k] = operands.view[k].strides[axis] * (axis == last ? width : 1);
      }
    }
    args.indexer.push_back(axis == last ? ceil_div(shape[axis], width) : shape[axis], strides);
  }
}

// The kernel for an operation, and how it walks.
struct Choice {
  ElementwiseKernel kernel;
  bool vectors;
  int width, unroll, block;
};

Choice choose_kernel(const Elementwise& op, const Operands& operands) {
  const UfuncInfo& info = ufunc_info(op.ufunc);
  const ElementwiseKernels& kernels = kernels_of(op.ufunc);
  bool costly = kernels.costly;
  VectorType type = vector_type(op.compute);
  int size = static_cast<int>(itemsize(op.compute));
  if (type != VectorType::none) {
    ElementwiseKernel kernel = kernels.vector[static_cast<int>(type)];
    int width = vector_width(size < 16 ? size : 16);
    Dtype out_dtype = gives_bool(info.rule) ? bool_ : op.compute;
    if (kernel && takes_vectors(op, operands, out_dtype, width)) {
      return {kernel, true, width, vector_unroll(costly, size, op.num_inputs), kVectorBlock};
    }
  }
  ComputeType compute = compute_type(op.compute);
  ElementwiseKernel kernel = kernels.generic[static_cast<int>(compute)];
  if (!kernel) {
    throw DtypeError(std::string(op.name()) + ": no kernel computes it in " +
                     std::string(dtype_name(op.compute)));
  }
  return {kernel, false, 1, generic_unroll(costly), kBlock};
}

void fill_inputs(ElementwiseArgs& args, const Elementwise& op, const Operands& operands,
                 int width) {
  int last = operands.view[0].ndim() - 1;
  args.straight = last == 0;
  args.aligned = true;
  for (int k = 0; k < op.num_inputs; ++k) {
    const ArrayView& view = operands.view[k + 1];
    ElementwiseArgs::Input& input = args.in[k];
    input.data = view.data;
    if (view.data) {
      input.vector = view.strides[last] != 0;
      input.aligned = vectors_are_aligned(view, true, itemsize(view.dtype) * width);
      args.straight &= input.vector;
      args.aligned &= input.aligned;
      input.type = ElementType(view.dtype, compute_type(op.compute),
                               op.compute == bool_ || (op.ufunc == ufunc::where && k == 0));
    } else {
      make_number(op.in[k].scalar, op.compute, input.number);
    }
  }
}

void launch_part(const Elementwise& op, const LaunchContext& context, const Operands& operands) {
  const ArrayView& out = operands.view[0];
  Choice choice = choose_kernel(op, operands);
  ElementwiseArgs args = {};
  args.size = out.size();
  args.function = kernels_of(op.ufunc).function;
  args.out = out.data;
  args.out_dtype = out.dtype;
  args.out_aligned = vectors_are_aligned(out, true, itemsize(out.dtype) * choice.width);
  fill_inputs(args, op, operands, choice.width);
  fill_indexer(args, operands, choice.width);
  bool one_row = out.ndim() == 1;
  args.count =
      static_cast<unsigned>(one_row ? ceil_div(args.size, choice.width) : args.size / choice.width);
  // Small arrays are spread over as many threads as there are.
  int most = choice.unroll * choice.block * kMultiprocessors;
  args.unroll = args.count >= static_cast<unsigned>(most) ? choice.unroll : 1;
  args.straight &= args.unroll == choice.unroll;
  launch_kernel(op.name(), context, choice.kernel, ceil_div(args.count, choice.block * args.unroll),
                choice.block, args);
}

// In as many parts as indices of 32 bits want.
void launch_parts(const Elementwise& op, const LaunchContext& context, Operands operands) {
  normalize(operands);
  const ArrayView& out = operands.view[0];
  std::span<const ArrayView> views(operands.view, static_cast<std::size_t>(op.num_inputs) + 1);
  if (run_mixed(op, context, views)) return;
  if (out.size() <= kMaxCount) return launch_part(op, context, operands);
  int axis = 0;  // two halves along the longest one
  for (int i = 1; i < out.ndim(); ++i) axis = out.shape[i] > out.shape[axis] ? i : axis;
  std::int64_t half = out.shape[axis] / 2;
  half -= half >= 64 ? half % 64 : 0;  // vectors stay aligned
  Operands part = operands;
  for (int k = 0; k <= op.num_inputs; ++k) {
    if (!part.view[k].data) continue;
    part.view[k].shape[axis] = half;
    operands.view[k].shape[axis] -= half;
    operands.view[k].data += half * operands.view[k].strides[axis];
  }
  launch_parts(op, context, part);
  launch_parts(op, context, operands);
}

}  // namespace
}  // namespace rensa::cuda

namespace rensa::operations {

void Elementwise::run_cuda(const cuda::LaunchContext& context) {
  if (out.view.size() == 0) return;
  if (ufunc == ufunc::copy) {
    if (!in[0].array.present()) {
      return cuda::fill_elements(name(), context, in[0].scalar, compute, out.view);
    }
    if (in[0].array.view.dtype == out.view.dtype) {
      return cuda::copy_elements(name(), context, in[0].array.view, out.view);
    }
    if (in[0].array.view.dtype == compute &&
        cuda::convert_elements(name(), context, in[0].array.view, out.view)) {
      return;
    }
  }
  cuda::Operands operands;
  operands.num_inputs = num_inputs;
  operands.view[0] = out.view;
  for (int k = 0; k < num_inputs; ++k) {
    if (in[k].array.present()) operands.view[k + 1] = in[k].array.view;
  }
  cuda::launch_parts(*this, context, operands);
}

}  // namespace rensa::operations

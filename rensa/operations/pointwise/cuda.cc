// Pointwise rows on a GPU: the choice between the kernel for flat arrays and the one for others.
#include <algorithm>
#include <span>

#include "rensa/operations/pointwise/cuda_kernels.cuh"
#include "rensa/operations/pointwise/pointwise.h"

namespace rensa::cuda {
namespace {

using operations::Pointwise;

constexpr int kMostOperands = kMostPointwiseOutputs + kMostPointwiseInputs;

const PointwiseKernels& kernels_of(const PointwiseRow& row) {
  static const PointwiseTable table = [] {
    PointwiseTable t = {};
    add_pointwise_activation(t);
    add_pointwise_elementary(t);
    add_pointwise_loss(t);
    add_pointwise_recurrent(t);
    add_pointwise_special(t);
    return t;
  }();
  return table.row[row.index];
}

// One call's operands after broadcasting, axes in order and merged: outputs, then inputs. Inputs
// that are numbers have no data.
struct PointwiseOperands {
  int outputs, inputs;
  ArrayView view[kMostOperands];
  const ArrayView& input(int k) const { return view[outputs + k]; }
  std::span<ArrayView> all() { return {view, static_cast<std::size_t>(outputs + inputs)}; }
  std::span<const ArrayView> all() const {
    return {view, static_cast<std::size_t>(outputs + inputs)};
  }
};

void normalize(PointwiseOperands& operands) {
  ArrayView* present[kMostOperands];
  int count = 0;
  for (ArrayView& view : operands.all()) {
    if (view.data) present[count++] = &view;
  }
  normalize_axes(present, count);
  keep_an_axis(present, count);
}

void fill_inputs(PointwiseInput (&in)[kMostPointwiseInputs], const Pointwise& op,
                 const PointwiseOperands& operands) {
  for (int k = 0; k < operands.inputs; ++k) {
    const ArrayView& view = operands.input(k);
    in[k].data = view.data;
    if (view.data) in[k].type = ElementType(view.dtype, compute_type(op.compute), false);
    else make_number(op.in[static_cast<std::size_t>(k)].scalar, op.compute, in[k].number);
  }
}

// Whether every array's element i lies behind its element i - 1, in the dtype that is computed in.
bool is_flat(const Pointwise& op, const PointwiseOperands& operands) {
  if (operands.view[0].ndim() != 1) return false;
  return std::ranges::all_of(operands.all(), [&](const ArrayView& view) {
    return !view.data || (view.dtype == op.compute && view.strides[0] == itemsize(view.dtype));
  });
}

void launch_flat(const Pointwise& op, const LaunchContext& context,
                 const PointwiseOperands& operands) {
  int width = flat_width(itemsize(op.compute));
  PointwiseFlatArgs args = {};
  args.size = operands.view[0].size();
  args.aligned = std::ranges::all_of(operands.all(), [&](const ArrayView& view) {
    return !view.data || is_aligned(view.data, itemsize(op.compute) * width);
  });
  for (int k = 0; k < operands.outputs; ++k) args.out[k] = operands.view[k].data;
  fill_inputs(args.in, op, operands);
  // Small arrays are spread over as many threads as there are.
  std::int64_t count = ceil_div(args.size, width);
  int most = flat_unroll(op.row->inputs, op.row->outputs);
  args.unroll = count >= std::int64_t{most} * kFlatBlock * kMultiprocessors ? most : 1;
  launch_kernel(op.name(), context,
                kernels_of(*op.row).flat[static_cast<int>(vector_type(op.compute))],
                ceil_div(count, std::int64_t{kFlatBlock} * args.unroll), kFlatBlock, args);
}

void launch_strided(const Pointwise& op, const LaunchContext& context,
                    const PointwiseOperands& operands) {
  const ArrayView& out = operands.view[0];
  PointwiseStridedArgs args = {};
  args.count = static_cast<unsigned>(out.size());
  for (int k = 0; k < operands.outputs; ++k) {
    args.out[k] = operands.view[k].data;
    args.out_dtype[k] = operands.view[k].dtype;
  }
  fill_inputs(args.in, op, operands);
  for (int axis = 0; axis < out.ndim(); ++axis) {
    std::int64_t strides[kMostOperands] = {};
    for (std::size_t k = 0; k < operands.all().size(); ++k) {
      if (operands.view[k].data) strides[k] = operands.view[k].strides[axis];
    }
    args.indexer.push_back(out.shape[axis], strides);
  }
  launch_kernel(op.name(), context,
                kernels_of(*op.row).strided[static_cast<int>(compute_type(op.compute))],
                ceil_div(args.count, kBlock), kBlock, args);
}

// In as many parts as indices of 32 bits want.
void launch_parts(const Pointwise& op, const LaunchContext& context, PointwiseOperands operands) {
  normalize(operands);
  const ArrayView& out = operands.view[0];
  if (vector_type(op.compute) != VectorType::none && is_flat(op, operands)) {
    return launch_flat(op, context, operands);
  }
  if (out.size() <= kMaxCount) return launch_strided(op, context, operands);
  int axis = 0;  // two halves along the longest one
  for (int i = 1; i < out.ndim(); ++i) axis = out.shape[i] > out.shape[axis] ? i : axis;
  std::int64_t half = out.shape[axis] / 2;
  PointwiseOperands part = operands;
  for (std::size_t k = 0; k < operands.all().size(); ++k) {
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

void Pointwise::run_cuda(const cuda::LaunchContext& context) {
  if (out[0].view.size() == 0) return;
  cuda::PointwiseOperands operands;
  operands.outputs = row->outputs;
  operands.inputs = row->inputs;
  ArrayView* view = operands.view;
  for (const Operand& output : out) *view++ = output.view;
  for (const ElementwiseInput& input : in) {
    if (input.array.present()) *view = input.array.view;
    ++view;
  }
  cuda::launch_parts(*this, context, operands);
}

}  // namespace rensa::operations

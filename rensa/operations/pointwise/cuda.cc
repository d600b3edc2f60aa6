// Pointwise rows on a GPU: the choice between the kernels for flat arrays, for matrices and for
// others.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>

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

// Whether a view of one axis is one element for all.
bool is_single(const ArrayView& view) { return view.strides[0] == 0; }

// Whether every array's element i lies behind its element i - 1, in the dtype that is computed in;
// an input may be one element for all.
bool is_flat(const Pointwise& op, const PointwiseOperands& operands) {
  if (operands.view[0].ndim() != 1) return false;
  for (int k = 0; k < operands.outputs + operands.inputs; ++k) {
    const ArrayView& view = operands.view[k];
    if (!view.data) continue;
    if (view.dtype != op.compute) return false;
    if (k >= operands.outputs && is_single(view)) continue;
    if (view.strides[0] != itemsize(view.dtype)) return false;
  }
  return true;
}

void launch_flat(const Pointwise& op, const LaunchContext& context,
                 const PointwiseOperands& operands) {
  int width = flat_width(itemsize(op.compute));
  PointwiseFlatArgs args = {};
  args.size = operands.view[0].size();
  args.aligned = std::ranges::all_of(operands.all(), [&](const ArrayView& view) {
    return !view.data || is_single(view) || is_aligned(view.data, itemsize(op.compute) * width);
  });
  for (int k = 0; k < operands.outputs; ++k) args.out[k] = operands.view[k].data;
  fill_inputs(args.in, op, operands);
  for (int k = 0; k < operands.inputs; ++k) {
    if (!operands.input(k).data || !is_single(operands.input(k))) continue;
    args.any_single = true;
    args.single[k] = std::exchange(args.in[k].data, nullptr);
  }
  // Small arrays are spread over as many threads as there are.
  std::int64_t count = ceil_div(args.size, width);
  int most = flat_unroll(op.row->inputs, op.row->outputs);
  args.unroll = count >= std::int64_t{most} * kFlatBlock * kMultiprocessors ? most : 1;
  launch_kernel(op.name(), context,
                kernels_of(*op.row).flat[static_cast<int>(vector_type(op.compute))],
                ceil_div(count, std::int64_t{kFlatBlock} * args.unroll), kFlatBlock, args);
}

// Whether an input is one element for each row.
bool is_spread(const ArrayView& view) {
  int last = view.ndim() - 1;
  return view.strides[last] == 0 && view.shape[last] > 1;
}

// The distance from row to row, if all axes but the last one are one axis of rows.
std::optional<std::int64_t> pitch_of(const ArrayView& view) {
  if (view.ndim() == 3 && view.strides[0] != view.strides[1] * view.shape[1]) return {};
  return view.strides[view.ndim() - 2];
}

// Whether there is a kernel for the arrays as matrices of the dtype that is computed in, whose rows
// lie flat: at any distance from one another, one row for all, or one element for each row; two
// axes of rows if they are so for that element's sake alone. Indices and distances take 32 bits.
bool is_matrix(const Pointwise& op, const PointwiseOperands& operands) {
  if (kernels_of(*op.row).matrix[static_cast<int>(vector_type(op.compute))] == nullptr) {
    return false;
  }
  const ArrayView& out = operands.view[0];
  if ((out.ndim() != 2 && out.ndim() != 3) || out.size() > kMaxCount) return false;
  int last = out.ndim() - 1;
  bool any_rows = false;  // an input of rows
  for (int k = 0; k < operands.outputs + operands.inputs; ++k) {
    const ArrayView& view = operands.view[k];
    if (!view.data) continue;
    if (view.dtype != op.compute) return false;
    if (k >= operands.outputs && is_spread(view)) continue;
    std::optional<std::int64_t> pitch = pitch_of(view);
    if (view.strides[last] != itemsize(view.dtype) || !pitch || *pitch < 0 ||
        *pitch > std::numeric_limits<unsigned>::max()) {
      return false;
    }
    any_rows |= k >= operands.outputs;
  }
  return any_rows;
}

// The most elements of a vector that divide a row and are aligned in every array, but fewer where
// that leaves multiprocessors without work.
int matrix_width(const PointwiseOperands& operands, std::int64_t itemsize) {
  const ArrayView& out = operands.view[0];
  auto fits = [&](std::int64_t width) {
    return out.shape[out.ndim() - 1] % width == 0 &&
           out.size() / width >= std::int64_t{kMultiprocessors} * kMatrixBlock &&
           std::ranges::all_of(operands.all(), [&](const ArrayView& view) {
             return !view.data || is_spread(view) ||
                    vectors_are_aligned(view, true, width * itemsize);
           });
  };
  int width = 1;
  while (2 * width * itemsize <= kMatrixBytes && fits(2 * width)) width *= 2;
  return width;
}

// 8 bytes of elements that are all the number.
std::uint64_t repeated(const Scalar& number, Dtype dtype) {
  auto repeat = [](auto element) {
    std::array<decltype(element), sizeof(std::uint64_t) / sizeof(element)> elements;
    elements.fill(element);
    return std::bit_cast<std::uint64_t>(elements);
  };
  if (dtype == Dtype::float16) return repeat(half_t(number.as<float>()));
  if (dtype == Dtype::bfloat16) return repeat(bfloat16_t(number.as<float>()));
  return repeat(number.as<float>());
}

void launch_matrix(const Pointwise& op, const LaunchContext& context,
                   const PointwiseOperands& operands) {
  const ArrayView& out = operands.view[0];
  int last = out.ndim() - 1;
  PointwiseMatrixArgs args = {};
  args.width = matrix_width(operands, itemsize(op.compute));
  args.count = static_cast<unsigned>(out.size() / args.width);
  args.columns = FastDiv(out.shape[last] / args.width);
  args.inner = FastDiv(last == 2 ? out.shape[1] : 1);
  auto place = [&](int k, const ArrayView& view) {
    args.operand[k] = {view.data, static_cast<unsigned>(view.strides[last - 1])};
  };
  for (int k = 0; k < operands.outputs; ++k) place(k, operands.view[k]);
  auto has_rows = [&](int k) {
    return operands.input(k).data != nullptr && !is_spread(operands.input(k));
  };
  int any = 0;  // an input of rows: is_matrix asks for one
  while (!has_rows(any)) ++any;
  for (int k = 0; k < operands.inputs; ++k) {
    const ArrayView& view = operands.input(k);
    place(operands.outputs + k, operands.input(has_rows(k) ? k : any));
    if (has_rows(k)) continue;
    if (view.data) {
      args.spreads |= 1u << k;
      args.spread[k] = {view.data, view.strides[0], last == 2 ? view.strides[1] : 0};
    } else {
      args.numbers |= 1u << k;
      args.number[k] = repeated(op.in[static_cast<std::size_t>(k)].scalar, op.compute);
    }
  }
  launch_kernel(op.name(), context,
                kernels_of(*op.row).matrix[static_cast<int>(vector_type(op.compute))],
                ceil_div(args.count, kMatrixBlock), kMatrixBlock, args);
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
  if (vector_type(op.compute) != VectorType::none) {
    if (is_flat(op, operands)) return launch_flat(op, context, operands);
    if (is_matrix(op, operands)) return launch_matrix(op, context, operands);
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

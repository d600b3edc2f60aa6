// Calls of pointwise rows: checks, dtypes and shapes.
#include "rensa/array/pointwise.h"

#include <fmt/format.h>

#include "rensa/array/internal.h"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"

namespace rensa::detail {

namespace {

using Inputs = std::span<const xp::ElementwiseArgument>;

struct Call {
  Dtype dtype;
  Shape shape;
  Device device;
};

Call check(const PointwiseRow& row, Inputs inputs) {
  if (inputs.size() != static_cast<std::size_t>(row.inputs)) {
    throw ValueError(
        fmt::format("{}: {} operands given, it takes {}", row.name, inputs.size(), row.inputs));
  }
  const Array* first = nullptr;
  Call call;
  for (const auto& input : inputs) {
    if (!input.array) continue;
    check_defined(row.name, *input.array);
    Dtype dtype = floating_dtype(input.array->dtype());
    if (!first) {
      first = input.array;
      call = {dtype, first->shape(), first->device()};
      continue;
    }
    check_same_device(row.name, *first, *input.array);
    call.dtype = promote_types(call.dtype, dtype);
    if (input.array->shape() == call.shape) continue;
    call.shape = broadcast_shapes(row.name, call.shape, input.array->shape());
  }
  if (!first) throw ValueError(fmt::format("{}: none of the operands is an array", row.name));
  if (!rule_takes(row.rule, compute_type(call.dtype))) {
    throw DtypeError(fmt::format("{}: {} is not taken, only floats and integers; cast with astype",
                                 row.name, dtype_name(call.dtype)));
  }
  return call;
}

// As an array of the dtype would hold it.
Scalar number_in(Scalar value, Dtype dtype) {
  if (dtype == float16) return half_t(static_cast<float>(value.real()));
  if (dtype == bfloat16) return bfloat16_t(static_cast<float>(value.real()));
  return value;
}

void run(const PointwiseRow& row, const Call& call, Inputs inputs, std::span<const Array> outputs) {
  if (call.shape.total() == 0) return;
  operations::Pointwise op(row);
  op.compute = call.dtype;
  op.in.resize(inputs.size());
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (const Array* array = inputs[k].array) {
      op.in[k].array.storage = array->storage().get();
      op.in[k].array.view =
          array->shape() == call.shape ? array->view() : broadcast_view(array->view(), call.shape);
    } else {
      op.in[k].scalar = number_in(inputs[k].scalar, call.dtype);
    }
  }
  op.out.reserve(outputs.size());
  for (const Array& output : outputs) op.out.push_back(output.operand());
  std::vector<ArrayView*> views;
  for (Operand& out : op.out) views.push_back(&out.view);
  for (auto& in : op.in) {
    if (in.array.present()) views.push_back(&in.array.view);
  }
  order_axes_by_output(views);
  launch(op);
}

}  // namespace

std::vector<Array> pointwise(const PointwiseRow& row, Inputs inputs) {
  Call call = check(row, inputs);
  std::vector<Array> outputs;
  outputs.reserve(static_cast<std::size_t>(row.outputs));
  std::vector<const Array*> arrays;
  for (const auto& input : inputs) {
    if (input.array) arrays.push_back(input.array);
  }
  for (int k = 0; k < row.outputs; ++k) {
    outputs.push_back(new_array_beside(arrays, call.shape, call.dtype, call.device));
  }
  run(row, call, inputs, outputs);
  return outputs;
}

void pointwise_into(const PointwiseRow& row, Inputs inputs, std::span<const Array> outputs) {
  Call call = check(row, inputs);
  if (outputs.size() != static_cast<std::size_t>(row.outputs)) {
    throw ValueError(
        fmt::format("{}: {} outputs given, it has {}", row.name, outputs.size(), row.outputs));
  }
  for (const Array& output : outputs) {
    check_writable(row.name, output);
    if (output.shape() != call.shape) {
      throw ShapeError(fmt::format("{}: the result of shape {} does not fit into {}", row.name,
                                   call.shape.str(), output.view().describe()));
    }
  }
  run(row, call, inputs, outputs);
}

}  // namespace rensa::detail

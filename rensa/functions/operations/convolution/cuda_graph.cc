// Descriptions of convolutions for cuDNN.
#include "rensa/functions/operations/convolution/cuda_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <locale>
#include <span>
#include <sstream>
#include <string_view>
#include <utility>

namespace rensa::cuda {

namespace {

using operations::Convolution;
using operations::ConvolutionDirection;
using Numbers = std::vector<std::int64_t>;

// The tensors' names in the graph; the last two are those of values that are in no memory.
constexpr std::int64_t kX = 1, kW = 2, kY = 3, kBias = 4, kSums = 5, kBiased = 6;

/// Of the spatial axes, of which cuDNN wants two at least.
Numbers spatial(const Shape& shape, std::int64_t filler) {
  Numbers numbers(shape.begin(), shape.end());
  if (numbers.size() == 1) numbers.insert(numbers.begin(), filler);
  return numbers;
}

Numbers extents(const ArrayView& view) {
  Numbers numbers(view.shape.begin(), view.shape.end());
  if (numbers.size() == 3) numbers.insert(numbers.begin() + 2, 1);
  return numbers;
}

/// In elements; of axes of extent 1 too, from which the library tells the layout.
Numbers strides(const Numbers& shape, bool channels_last) {
  Numbers result(shape.size());
  std::int64_t step = 1;
  if (channels_last) result[1] = std::exchange(step, shape[1]);
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (i == 1 && channels_last) continue;
    result[i] = step;
    step *= shape[i];
  }
  return result;
}

/// The type of sums and of what follows them until they are rounded.
cudnnDataType_t compute_type(const Convolution& op) {
  return op.x.view.dtype == float64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

CudnnDescriptor make_tensor(const Convolution& op, std::int64_t name, cudnnDataType_t type,
                            const Numbers& shape, CudnnMemory memory = CudnnMemory::device) {
  return make_cudnn_tensor(op.name(),
                           {name, type, shape, strides(shape, op.channels_last), memory});
}

CudnnDescriptor make_convolution(const Convolution& op) {
  CudnnDescriptor descriptor(op.name(), "convolution", CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  cudnnDataType_t type = compute_type(op);
  cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  Numbers pad = spatial(op.pad, 0);
  descriptor.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  descriptor.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  descriptor.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<std::int64_t>(pad.size()));
  descriptor.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, pad);
  descriptor.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, pad);
  descriptor.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, spatial(op.dilate, 1));
  descriptor.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, spatial(op.stride, 1));
  descriptor.finalize();
  return descriptor;
}

constexpr std::string_view kWithBias = "bias ";  // how the text of a choice begins

/// A direction's descriptor and its attributes' names.
struct Names {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta;
};

Names names_of(ConvolutionDirection direction) {
  switch (direction) {
    case ConvolutionDirection::forward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case ConvolutionDirection::input_gradient:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    default:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  }
}

/// A factor of a part of the graph, in the type that it computes in.
void set_factor(CudnnDescriptor& part, cudnnBackendAttributeName_t name, const Convolution& op,
                double factor) {
  auto single = static_cast<float>(factor);
  if (compute_type(op) == CUDNN_DATA_DOUBLE) part.set(name, CUDNN_TYPE_DOUBLE, 1, &factor);
  else part.set(name, CUDNN_TYPE_FLOAT, 1, &single);
}

CudnnDescriptor make_operation(const Convolution& op, const CudnnDescriptor& x,
                               const CudnnDescriptor& w, const CudnnDescriptor& y,
                               const CudnnDescriptor& convolution) {
  Names names = names_of(op.direction);
  CudnnDescriptor operation(op.name(), "operation", names.type);
  operation.set(names.x, x);
  operation.set(names.w, w);
  operation.set(names.y, y);
  operation.set(names.convolution, convolution);
  set_factor(operation, names.alpha, op, 1);
  set_factor(operation, names.beta, op, 0);
  operation.finalize();
  return operation;
}

/// Whether the engine keeps what proposals() say.
bool keeps_promises(const Convolution& op, const CudnnDescriptor& config) {
  std::vector<cudnnBackendNumericalNote_t> noted = numerical_notes(op.name(), config);
  bool exact = op.x.view.dtype == float32 && !op.tf32;
  return std::none_of(noted.begin(), noted.end(), [&](cudnnBackendNumericalNote_t note) {
    switch (note) {
      case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC: return op.deterministic;
      case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION: return true;
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
      // Their transforms cost digits.
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13: return exact;
      default: return false;
    }
  });
}

}  // namespace

std::string ConvolutionChoice::str() const {
  std::string text = fmt::format("{}{}", bias ? kWithBias : "", engine);
  for (auto [type, value] : knobs) text += fmt::format(" {}={}", type, value);
  return text;
}

std::optional<ConvolutionChoice> ConvolutionChoice::parse(const std::string& text) {
  ConvolutionChoice choice;
  choice.bias = text.starts_with(kWithBias);
  std::istringstream in(choice.bias ? text.substr(kWithBias.size()) : text);
  in.imbue(std::locale::classic());
  if (!(in >> choice.engine)) return std::nullopt;
  std::int64_t type = 0, value = 0;
  for (char sign = 0; in >> type;) {
    if (!in.get(sign) || sign != '=' || !(in >> value)) return std::nullopt;
    choice.knobs.emplace_back(type, value);
  }
  if (!in.eof()) return std::nullopt;
  return choice;
}

ConvolutionGraph::ConvolutionGraph(const Convolution& op, Epilogue epilogue,
                                   const CudnnHandle& handle)
    : epilogue_(epilogue) {
  cudnnDataType_t type = cudnn_type(op.x.view.dtype), compute = compute_type(op);
  CudnnDescriptor& x = add(make_tensor(op, kX, type, extents(op.x.view)));
  CudnnDescriptor& w = add(make_tensor(op, kW, type, extents(op.w.view)));
  Numbers shape = extents(op.y.view);
  CudnnDescriptor& y = add(make_tensor(op, kY, type, shape));
  CudnnDescriptor& convolution = add(make_convolution(op));
  std::vector<cudnnBackendDescriptor_t> operations;
  if (epilogue == Epilogue::none) {
    operations.push_back(add(make_operation(op, x, w, y, convolution)).raw());
  } else {
    CudnnDescriptor& sums = add(make_tensor(op, kSums, compute, shape, CudnnMemory::none));
    operations.push_back(add(make_operation(op, x, w, sums, convolution)).raw());
    Numbers row(shape.size(), 1);
    row[1] = shape[1];
    CudnnDescriptor& bias = add(make_tensor(op, kBias, type, row));
    bool relu = epilogue == Epilogue::bias_relu;
    CudnnDescriptor& biased =
        relu ? add(make_tensor(op, kBiased, compute, shape, CudnnMemory::none)) : y;
    const CudnnDescriptor* part = add_pointwise(op, CUDNN_POINTWISE_ADD, sums, &bias, biased);
    if (!part) return;
    operations.push_back(part->raw());
    if (relu) part = add_pointwise(op, CUDNN_POINTWISE_RELU_FWD, biased, nullptr, y);
    if (!part) return;
    if (relu) operations.push_back(part->raw());
  }
  auto graph = make_cudnn_graph(op.name(), operations, handle);
  if (graph) graph_.emplace(std::move(*graph));
}

CudnnDescriptor* ConvolutionGraph::add_pointwise(const Convolution& op, cudnnPointwiseMode_t mode,
                                                 const CudnnDescriptor& in,
                                                 const CudnnDescriptor* second,
                                                 const CudnnDescriptor& out) {
  CudnnDescriptor& pointwise =
      add(CudnnDescriptor(op.name(), "pointwise", CUDNN_BACKEND_POINTWISE_DESCRIPTOR));
  cudnnDataType_t compute = compute_type(op);
  pointwise.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  pointwise.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &compute);
  if (mode == CUDNN_POINTWISE_RELU_FWD) {
    cudnnNanPropagation_t nan = CUDNN_PROPAGATE_NAN;
    pointwise.set(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, 1, &nan);
  }
  if (!pointwise.finalize_if_possible()) return nullptr;
  CudnnDescriptor& operation = add(CudnnDescriptor(op.name(), "pointwise operation",
                                                   CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR));
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, in);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, out);
  set_factor(operation, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, op, 1);
  set_factor(operation, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, op, 1);
  if (second) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *second);
  return operation.finalize_if_possible() ? &operation : nullptr;
}

std::vector<CudnnDescriptor> ConvolutionGraph::proposals(const Convolution& op) const {
  std::vector<CudnnDescriptor> kept;
  if (!graph_) return kept;
  for (CudnnDescriptor& config : proposed_engines(op.name(), *graph_)) {
    if (keeps_promises(op, config)) kept.push_back(std::move(config));
  }
  return kept;
}

ConvolutionChoice ConvolutionGraph::choice_of(const Convolution& op,
                                              const CudnnDescriptor& config) const {
  ConvolutionChoice choice;
  choice.bias = epilogue_ != Epilogue::none;
  CudnnDescriptor engine = engine_of(op.name(), config);
  engine.get(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &choice.engine);
  std::vector<CudnnDescriptor> knobs;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int i = 0; i < CUDNN_KNOB_TYPE_COUNTS; ++i) {
    knobs.emplace_back(op.name(), "knob", CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    raw.push_back(knobs.back().raw());
  }
  std::int64_t count = config.get(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                  CUDNN_KNOB_TYPE_COUNTS, raw.data());
  count = std::min<std::int64_t>(count, CUDNN_KNOB_TYPE_COUNTS);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    cudnnBackendKnobType_t type{};
    std::int64_t value = 0;
    knobs[i].get(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
    knobs[i].get(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &value);
    choice.knobs.emplace_back(static_cast<std::int64_t>(type), value);
  }
  std::sort(choice.knobs.begin(), choice.knobs.end());
  return choice;
}

std::optional<ConvolutionExecution> ConvolutionExecution::make(
    const Convolution& op, std::shared_ptr<const ConvolutionGraph> graph, CudnnDescriptor config,
    std::int64_t limit) {
  auto made = make_cudnn_execution(op.name(), config);
  if (!made || static_cast<std::int64_t>(made->workspace_bytes) > limit) return std::nullopt;
  return ConvolutionExecution(std::move(graph), std::move(config), std::move(made->plan),
                              made->workspace_bytes);
}

cudnnStatus_t ConvolutionExecution::run(const Convolution& op, const LaunchContext& context) const {
  void* pointers[] = {op.x.view.data, op.w.view.data, op.y.view.data, op.bias.view.data};
  std::int64_t names[] = {kX, kW, kY, kBias};
  std::size_t count = epilogue() == Epilogue::none ? 3 : 4;
  return run_cudnn(op.name(), plan_, context, std::span(pointers, count), std::span(names, count),
                   context.workspace);
}

}  // namespace rensa::cuda

// Descriptions of convolutions for cuDNN.
#include "rensa/functions/operations/convolution/cuda_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <locale>
#include <span>
#include <sstream>

namespace rensa::cuda {

namespace {

using operations::Convolution;
using operations::ConvolutionDirection;
using Numbers = std::vector<std::int64_t>;

constexpr std::int64_t kAlignment = 16;         // of every tensor's address
constexpr std::int64_t kX = 1, kW = 2, kY = 3;  // the tensors' names in the graph

cudnnDataType_t data_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::float16: return CUDNN_DATA_HALF;
    case Dtype::bfloat16: return CUDNN_DATA_BFLOAT16;
    case Dtype::float32: return CUDNN_DATA_FLOAT;
    default: return CUDNN_DATA_DOUBLE;
  }
}

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

CudnnDescriptor make_tensor(const Convolution& op, std::int64_t name, const ArrayView& view) {
  CudnnDescriptor tensor(op.name(), "tensor", CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  cudnnDataType_t type = data_type(view.dtype);
  Numbers shape = extents(view), steps = strides(shape, op.channels_last);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, shape);
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, steps);
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, name);
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment);
  tensor.finalize();
  return tensor;
}

CudnnDescriptor make_convolution(const Convolution& op) {
  CudnnDescriptor descriptor(op.name(), "convolution", CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  cudnnDataType_t type = op.x.view.dtype == float64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
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

CudnnDescriptor make_operation(const Convolution& op, const CudnnDescriptor& x,
                               const CudnnDescriptor& w, const CudnnDescriptor& y,
                               const CudnnDescriptor& convolution) {
  Names names = names_of(op.direction);
  CudnnDescriptor operation(op.name(), "operation", names.type);
  operation.set(names.x, x);
  operation.set(names.w, w);
  operation.set(names.y, y);
  operation.set(names.convolution, convolution);
  if (op.x.view.dtype == float64) {
    double one = 1, zero = 0;
    operation.set(names.alpha, CUDNN_TYPE_DOUBLE, 1, &one);
    operation.set(names.beta, CUDNN_TYPE_DOUBLE, 1, &zero);
  } else {
    float one = 1, zero = 0;
    operation.set(names.alpha, CUDNN_TYPE_FLOAT, 1, &one);
    operation.set(names.beta, CUDNN_TYPE_FLOAT, 1, &zero);
  }
  operation.finalize();
  return operation;
}

/// What the heuristic of `mode` proposes, the best first; nothing where it does not know the graph.
std::vector<CudnnDescriptor> configs_of(const Convolution& op, const CudnnDescriptor& graph,
                                        cudnnBackendHeurMode_t mode) {
  CudnnDescriptor heuristic(op.name(), "heuristic", CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  std::vector<CudnnDescriptor> configs;
  if (!heuristic.finalize_if_supported()) return configs;
  std::int64_t count =
      heuristic.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr);
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < count; ++i) {
    configs.emplace_back(op.name(), "engine config", CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    raw.push_back(configs.back().raw());
  }
  if (count == 0) return configs;
  std::int64_t found = heuristic.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                     count, raw.data());
  while (static_cast<std::int64_t>(configs.size()) > found) configs.pop_back();
  return configs;
}

CudnnDescriptor engine_of(const Convolution& op, const CudnnDescriptor& config) {
  CudnnDescriptor engine(op.name(), "engine", CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.raw();
  config.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
  return engine;
}

/// Whether the engine keeps what proposals() say.
bool keeps_promises(const Convolution& op, const CudnnDescriptor& config) {
  CudnnDescriptor engine = engine_of(op, config);
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  std::int64_t count = engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                  CUDNN_NUMERICAL_NOTE_TYPE_COUNT, notes);
  std::span noted(notes, static_cast<std::size_t>(
                             std::min<std::int64_t>(count, CUDNN_NUMERICAL_NOTE_TYPE_COUNT)));
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
  std::string text = fmt::format("{}", engine);
  for (auto [type, value] : knobs) text += fmt::format(" {}={}", type, value);
  return text;
}

std::optional<ConvolutionChoice> ConvolutionChoice::parse(const std::string& text) {
  std::istringstream in(text);
  in.imbue(std::locale::classic());
  ConvolutionChoice choice;
  if (!(in >> choice.engine)) return std::nullopt;
  std::int64_t type = 0, value = 0;
  for (char sign = 0; in >> type;) {
    if (!in.get(sign) || sign != '=' || !(in >> value)) return std::nullopt;
    choice.knobs.emplace_back(type, value);
  }
  if (!in.eof()) return std::nullopt;
  return choice;
}

ConvolutionGraph::ConvolutionGraph(const Convolution& op, const CudnnHandle& handle) {
  parts_.push_back(make_tensor(op, kX, op.x.view));
  parts_.push_back(make_tensor(op, kW, op.w.view));
  parts_.push_back(make_tensor(op, kY, op.y.view));
  parts_.push_back(make_convolution(op));
  parts_.push_back(make_operation(op, parts_[0], parts_[1], parts_[2], parts_[3]));
  cudnnHandle_t raw = handle.get();
  graph_.emplace(op.name(), "graph", CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph_->set(CUDNN_ATTR_OPERATIONGRAPH_OPS, parts_.back());
  graph_->set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &raw);
  graph_->finalize();
}

std::vector<CudnnDescriptor> ConvolutionGraph::proposals(const Convolution& op) const {
  std::vector<CudnnDescriptor> kept;
  for (cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (CudnnDescriptor& config : configs_of(op, *graph_, mode)) {
      if (keeps_promises(op, config)) kept.push_back(std::move(config));
    }
  }
  return kept;
}

ConvolutionChoice choice_of(const Convolution& op, const CudnnDescriptor& config) {
  ConvolutionChoice choice;
  CudnnDescriptor engine = engine_of(op, config);
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
  CudnnDescriptor plan(op.name(), "plan", CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  if (!plan.finalize_if_supported()) return std::nullopt;
  std::int64_t bytes = 0;
  plan.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &bytes);
  if (bytes > limit) return std::nullopt;
  return ConvolutionExecution(std::move(graph), std::move(config), std::move(plan),
                              static_cast<std::size_t>(bytes));
}

cudnnStatus_t ConvolutionExecution::run(const Convolution& op, const LaunchContext& context) const {
  CudnnDescriptor pack(op.name(), "variant pack", CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  void* pointers[] = {op.x.view.data, op.w.view.data, op.y.view.data};
  std::int64_t names[] = {kX, kW, kY};
  void* workspace = context.workspace;
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, std::ssize(pointers),
           pointers);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, names);
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  pack.finalize();
  CudnnHandle handle(op.name(), context.device);
  check_cudnn(op.name(), "cudnnSetStream", "handle",
              cudnn().set_stream(handle.get(), static_cast<cudaStream_t>(context.handle)));
  return cudnn().execute(handle.get(), plan_.raw(), pack.raw());
}

}  // namespace rensa::cuda

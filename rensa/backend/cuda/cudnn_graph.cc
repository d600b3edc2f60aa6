// Parts of graphs for cuDNN.
#include "rensa/backend/cuda/cudnn_graph.h"

#include <algorithm>

namespace rensa::cuda {

namespace {

/// What the heuristic of `mode` proposes, the best first; nothing where it does not know the graph.
std::vector<CudnnDescriptor> configs_of(const char* operation, const CudnnDescriptor& graph,
                                        cudnnBackendHeurMode_t mode) {
  CudnnDescriptor heuristic(operation, "heuristic", CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  std::vector<CudnnDescriptor> configs;
  if (!heuristic.finalize_if_possible()) return configs;
  std::int64_t count =
      heuristic.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr);
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < count; ++i) {
    configs.emplace_back(operation, "engine config", CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    raw.push_back(configs.back().raw());
  }
  if (count == 0) return configs;
  std::int64_t found = heuristic.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                     count, raw.data());
  while (static_cast<std::int64_t>(configs.size()) > found) configs.pop_back();
  return configs;
}

}  // namespace

cudnnDataType_t cudnn_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::float16: return CUDNN_DATA_HALF;
    case Dtype::bfloat16: return CUDNN_DATA_BFLOAT16;
    case Dtype::float32: return CUDNN_DATA_FLOAT;
    default: return CUDNN_DATA_DOUBLE;
  }
}

CudnnDescriptor make_cudnn_tensor(const char* operation, const CudnnTensor& tensor) {
  CudnnDescriptor made(operation, "tensor", CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  constexpr std::int64_t kAlignment = 16;
  constexpr bool kTrue = true;
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &tensor.type);
  made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, tensor.shape);
  made.set(CUDNN_ATTR_TENSOR_STRIDES, tensor.strides);
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, tensor.name);
  made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment);
  if (tensor.memory == CudnnMemory::none) {
    made.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &kTrue);
  }
  if (tensor.memory == CudnnMemory::host) {
    made.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &kTrue);
  }
  made.finalize();
  return made;
}

std::optional<CudnnDescriptor> make_cudnn_graph(
    const char* operation, std::span<const cudnnBackendDescriptor_t> operations,
    const CudnnHandle& handle) {
  cudnnHandle_t raw = handle.get();
  CudnnDescriptor graph(operation, "graph", CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, std::ssize(operations),
            operations.data());
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &raw);
  if (!graph.finalize_if_possible()) return std::nullopt;
  return graph;
}

std::vector<CudnnDescriptor> proposed_engines(const char* operation, const CudnnDescriptor& graph) {
  std::vector<CudnnDescriptor> all;
  for (cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (CudnnDescriptor& config : configs_of(operation, graph, mode)) {
      all.push_back(std::move(config));
    }
  }
  return all;
}

CudnnDescriptor engine_of(const char* operation, const CudnnDescriptor& config) {
  CudnnDescriptor engine(operation, "engine", CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.raw();
  config.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
  return engine;
}

std::vector<cudnnBackendNumericalNote_t> numerical_notes(const char* operation,
                                                         const CudnnDescriptor& config) {
  CudnnDescriptor engine = engine_of(operation, config);
  std::vector<cudnnBackendNumericalNote_t> notes(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  std::int64_t count = engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                  std::ssize(notes), notes.data());
  notes.resize(static_cast<std::size_t>(std::min(count, std::ssize(notes))));
  return notes;
}

std::optional<CudnnExecution> make_cudnn_execution(const char* operation,
                                                   const CudnnDescriptor& config) {
  CudnnDescriptor plan(operation, "plan", CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  if (!plan.finalize_if_possible()) return std::nullopt;
  std::int64_t bytes = 0;
  plan.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &bytes);
  return CudnnExecution{std::move(plan), static_cast<std::size_t>(bytes)};
}

cudnnStatus_t run_cudnn(const char* operation, const CudnnDescriptor& plan,
                        const LaunchContext& context, std::span<void* const> addresses,
                        std::span<const std::int64_t> names, void* workspace) {
  CudnnDescriptor pack(operation, "variant pack", CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, std::ssize(addresses),
           addresses.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, names);
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  pack.finalize();
  CudnnHandle handle(operation, context.device);
  check_cudnn(operation, "cudnnSetStream", "handle",
              cudnn().set_stream(handle.get(), static_cast<cudaStream_t>(context.handle)));
  return cudnn().execute(handle.get(), plan.raw(), pack.raw());
}

}  // namespace rensa::cuda

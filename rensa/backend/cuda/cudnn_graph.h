// What graphs for cuDNN share: tensors, the engines that its heuristics propose, plans and runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rensa/backend/cuda/cudnn.h"
#include "rensa/core/dtype.h"
#include "rensa/device/operation.h"

namespace rensa::cuda {

/// Of a floating dtype.
cudnnDataType_t cudnn_type(Dtype dtype);

/// Where a tensor's elements lie.
enum class CudnnMemory : unsigned char {
  device,  // at a multiple of 16 bytes
  none,    // between two parts of a graph
  host,    // a number that is read when the plan runs
};

struct CudnnTensor {
  std::int64_t name = 0;  // in the graph
  cudnnDataType_t type{};
  std::vector<std::int64_t> shape, strides;  // in elements; of axes of extent 1 too
  CudnnMemory memory = CudnnMemory::device;
};

// `operation` is the name in errors, here and below; it has to outlive what is made.
CudnnDescriptor make_cudnn_tensor(const char* operation, const CudnnTensor& tensor);

/// Nothing where cuDNN does not take such a graph.
std::optional<CudnnDescriptor> make_cudnn_graph(
    const char* operation, std::span<const cudnnBackendDescriptor_t> operations,
    const CudnnHandle& handle);

/// The engine configurations that cuDNN's heuristics propose, the most promising first.
std::vector<CudnnDescriptor> proposed_engines(const char* operation, const CudnnDescriptor& graph);

CudnnDescriptor engine_of(const char* operation, const CudnnDescriptor& config);
/// What cuDNN says of the numbers that a configuration's engine gives.
std::vector<cudnnBackendNumericalNote_t> numerical_notes(const char* operation,
                                                         const CudnnDescriptor& config);

struct CudnnExecution {
  CudnnDescriptor plan;
  std::size_t workspace_bytes;
};

/// Nothing where cuDNN does not support it. The caller holds the GPU's handle.
std::optional<CudnnExecution> make_cudnn_execution(const char* operation,
                                                   const CudnnDescriptor& config);

/// Queues a plan with the tensors' addresses by their names. Returns what cuDNN says; what is no
/// success is the caller's to report.
cudnnStatus_t run_cudnn(const char* operation, const CudnnDescriptor& plan,
                        const LaunchContext& context, std::span<void* const> addresses,
                        std::span<const std::int64_t> names, void* workspace);

}  // namespace rensa::cuda

// cuDNN's functions, had from the library at run time: its graph API, in which work is described by
// descriptors with attributes, and one handle per GPU.
#pragma once

#include <cudnn_graph.h>

#include <cstdint>
#include <mutex>
#include <span>
#include <utility>

#include "rensa/core/device.h"

namespace rensa::cuda {

struct Cudnn {
  decltype(&::cudnnGetVersion) version;
  decltype(&::cudnnCreate) create;
  decltype(&::cudnnSetStream) set_stream;
  decltype(&::cudnnGetErrorString) error_string;
  decltype(&::cudnnGetLastErrorString) last_error;
  decltype(&::cudnnBackendCreateDescriptor) create_descriptor;
  decltype(&::cudnnBackendDestroyDescriptor) destroy_descriptor;
  decltype(&::cudnnBackendFinalize) finalize;
  decltype(&::cudnnBackendSetAttribute) set_attribute;
  decltype(&::cudnnBackendGetAttribute) get_attribute;
  decltype(&::cudnnBackendExecute) execute;
};

/// Opens the library at the first call. Throws CudaError where it is missing.
const Cudnn& cudnn();

/// Throws CudaError naming the operation, the library's function, what it was called for and what
/// it says.
void check_cudnn(const char* operation, const char* function, const char* what,
                 cudnnStatus_t status);

/// The handle of a GPU, for this thread alone until the object is gone.
class CudnnHandle {
 public:
  /// The handle is made at the first call and lives as long as the process.
  CudnnHandle(const char* operation, Device device);
  cudnnHandle_t get() const { return handle_; }

 private:
  std::unique_lock<std::mutex> hold_;
  cudnnHandle_t handle_ = nullptr;
};

/// A descriptor. `operation` and `what` ("tensor") stand in errors and have to outlive it.
class CudnnDescriptor {
 public:
  CudnnDescriptor(const char* operation, const char* what, cudnnBackendDescriptorType_t type);
  ~CudnnDescriptor();
  CudnnDescriptor(CudnnDescriptor&& from) noexcept
      : operation_(from.operation_), what_(from.what_), raw_(std::exchange(from.raw_, nullptr)) {}
  CudnnDescriptor& operator=(CudnnDescriptor&&) = delete;

  cudnnBackendDescriptor_t raw() const { return raw_; }

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
           const void* values);
  void set(cudnnBackendAttributeName_t name, std::int64_t value) {
    set(name, CUDNN_TYPE_INT64, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values) {
    set(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
  }
  void set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.raw_);
  }
  void finalize() {
    check_cudnn(operation_, "cudnnBackendFinalize", what_, cudnn().finalize(raw_));
  }
  /// For what there are others of: false where the library does not support it, or fails to make it
  /// (an engine that does not compile on this machine, say). refusal() says why.
  bool finalize_if_possible();
  /// What cuDNN said of the last one on this thread that was not possible; empty where all were.
  static const std::string& refusal();

  /// Reads up to `count` values; returns how many there are.
  std::int64_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                   std::int64_t count, void* values) const;

 private:
  const char *operation_, *what_;
  cudnnBackendDescriptor_t raw_ = nullptr;
};

}  // namespace rensa::cuda

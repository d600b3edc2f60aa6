// cuDNN, opened when it is first needed.
#include "rensa/backend/cuda/cudnn.h"

#include <fmt/format.h>

#include <array>

#include "rensa/backend/cuda/library.h"
#include "rensa/core/error.h"
#include "rensa/device/cuda_runtime.h"

namespace rensa::cuda {

namespace {

Cudnn load_cudnn() {
  Library library(cudnn_source());
  Cudnn table;
  library.bind("cudnnGetVersion", table.version);
  library.bind("cudnnCreate", table.create);
  library.bind("cudnnSetStream", table.set_stream);
  library.bind("cudnnGetErrorString", table.error_string);
  library.bind("cudnnGetLastErrorString", table.last_error);
  library.bind("cudnnBackendCreateDescriptor", table.create_descriptor);
  library.bind("cudnnBackendDestroyDescriptor", table.destroy_descriptor);
  library.bind("cudnnBackendFinalize", table.finalize);
  library.bind("cudnnBackendSetAttribute", table.set_attribute);
  library.bind("cudnnBackendGetAttribute", table.get_attribute);
  library.bind("cudnnBackendExecute", table.execute);
  return table;
}

struct HandleSlot {
  std::mutex mutex;
  cudnnHandle_t handle = nullptr;
};

HandleSlot& handle_slot(Device device) {
  static auto& slots = *new std::array<HandleSlot, kMaxGpus>;
  return slots.at(static_cast<std::size_t>(device.index));
}

}  // namespace

const Cudnn& cudnn() {
  static const Cudnn table = load_cudnn();
  return table;
}

namespace {

std::string failure_of(const char* function, const char* what, cudnnStatus_t status) {
  char detail[1024] = "";
  cudnn().last_error(detail, sizeof(detail));
  return fmt::format("{} ({}) failed with {}{}{}", function, what, cudnn().error_string(status),
                     *detail ? ": " : "", detail);
}

}  // namespace

void check_cudnn(const char* operation, const char* function, const char* what,
                 cudnnStatus_t status) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw CudaError(fmt::format("{}: {}", operation, failure_of(function, what, status)));
}

CudnnHandle::CudnnHandle(const char* operation, Device device) {
  HandleSlot& slot = handle_slot(device);
  hold_ = std::unique_lock(slot.mutex);
  if (!slot.handle) {
    runtime::set_device(device);
    check_cudnn(operation, "cudnnCreate", "handle", cudnn().create(&slot.handle));
  }
  handle_ = slot.handle;
}

CudnnDescriptor::CudnnDescriptor(const char* operation, const char* what,
                                 cudnnBackendDescriptorType_t type)
    : operation_(operation), what_(what) {
  check_cudnn(operation, "cudnnBackendCreateDescriptor", what,
              cudnn().create_descriptor(type, &raw_));
}

CudnnDescriptor::~CudnnDescriptor() {
  if (raw_) (void)cudnn().destroy_descriptor(raw_);
}

namespace {

std::string& latest_refusal() {
  thread_local std::string text;
  return text;
}

}  // namespace

bool CudnnDescriptor::finalize_if_possible() {
  cudnnStatus_t status = cudnn().finalize(raw_);
  if (status == CUDNN_STATUS_SUCCESS) return true;
  latest_refusal() = failure_of("cudnnBackendFinalize", what_, status);
  return false;
}

const std::string& CudnnDescriptor::refusal() { return latest_refusal(); }

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                          std::int64_t count, const void* values) {
  cudnnStatus_t status = cudnn().set_attribute(raw_, name, type, count, values);
  if (status == CUDNN_STATUS_SUCCESS) return;
  check_cudnn(operation_,
              fmt::format("cudnnBackendSetAttribute of {}", static_cast<int>(name)).c_str(), what_,
              status);
}

std::int64_t CudnnDescriptor::get(cudnnBackendAttributeName_t name,
                                  cudnnBackendAttributeType_t type, std::int64_t count,
                                  void* values) const {
  std::int64_t found = 0;
  cudnnStatus_t status = cudnn().get_attribute(raw_, name, type, count, &found, values);
  if (status != CUDNN_STATUS_SUCCESS) {
    check_cudnn(operation_,
                fmt::format("cudnnBackendGetAttribute of {}", static_cast<int>(name)).c_str(),
                what_, status);
  }
  return found;
}

}  // namespace rensa::cuda

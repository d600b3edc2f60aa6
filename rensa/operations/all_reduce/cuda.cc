// Sums over GPUs by NCCL.
#include "rensa/operations/all_reduce/all_reduce.h"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>

#include "rensa/backend/cuda/nccl.h"
#include "rensa/core/error.h"
#include "rensa/device/devices.h"
#include "rensa/device/launcher.h"

namespace rensa::cuda {

namespace {

using operations::AllReduce;

ncclDataType_t nccl_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::float16: return ncclFloat16;
    case Dtype::bfloat16: return ncclBfloat16;
    case Dtype::float32: return ncclFloat32;
    default: return ncclFloat64;
  }
}

/// What is queued inside starts together at the end: NCCL's calls of one thread for several GPUs
/// would wait for each other otherwise.
class NcclGroup {
 public:
  NcclGroup() { check_nccl("ncclGroupStart", nccl().group_start()); }
  ~NcclGroup() {
    if (open_) nccl().group_end();  // on the way out of an exception
  }
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;
  void end() {
    open_ = false;
    check_nccl("ncclGroupEnd", nccl().group_end());
  }

 private:
  bool open_ = true;
};

/// NCCL changes the thread's device as it likes.
class KeepDevice {
 public:
  KeepDevice() { known_ = cudaGetDevice(&device_) == cudaSuccess; }
  ~KeepDevice() {
    if (known_) cudaSetDevice(device_);
  }
  KeepDevice(const KeepDevice&) = delete;
  KeepDevice& operator=(const KeepDevice&) = delete;

 private:
  int device_ = 0;
  bool known_ = false;
};

void check_alike(const AllReduce& first, const AllReduce& other) {
  bool alike = first.arrays.size() == other.arrays.size();
  for (std::size_t i = 0; alike && i < first.arrays.size(); ++i) {
    const ArrayView& a = first.arrays[i].view;
    const ArrayView& b = other.arrays[i].view;
    if (a.dtype != b.dtype || a.size() != b.size()) {
      throw ShapeError(fmt::format("all_reduce: array {} is {} on rank {} and {} on rank {}", i,
                                   a.describe(), first.rank, b.describe(), other.rank));
    }
  }
  if (!alike) {
    throw ShapeError(fmt::format("all_reduce: {} arrays on rank {} and {} on rank {}",
                                 first.arrays.size(), first.rank, other.arrays.size(), other.rank));
  }
}

}  // namespace

struct AllReduceGroup::Impl {
  std::vector<ncclComm_t> communicators;
};

AllReduceGroup::AllReduceGroup(std::vector<Device> devices)
    : devices_(std::move(devices)), impl_(std::make_unique<Impl>()) {
  if (devices_.empty()) throw DeviceError("all_reduce: a group needs at least one GPU");
  std::vector<int> indices;
  for (Device device : devices_) {
    if (device.is_cpu()) throw DeviceError("all_reduce: a group is of GPUs, got cpu");
    check_device(device);
    if (std::count(devices_.begin(), devices_.end(), device) > 1) {
      throw DeviceError(fmt::format("all_reduce: {} stands twice in the group", device.str()));
    }
    indices.push_back(device.index);
  }
  std::vector<ncclComm_t> communicators(devices_.size(), nullptr);
  {
    KeepDevice keep;
    check_nccl("ncclCommInitAll",
               nccl().comm_init_all(communicators.data(), size(), indices.data()));
  }
  impl_->communicators = std::move(communicators);
}

AllReduceGroup::~AllReduceGroup() {
  KeepDevice keep;
  for (Device device : devices_) {
    // Errors are met again, and reported, by whoever waits next.
    if (cudaSetDevice(device.index) == cudaSuccess) cudaDeviceSynchronize();
  }
  for (ncclComm_t communicator : impl_->communicators) nccl().comm_destroy(communicator);
}

void AllReduceGroup::sum_all(std::span<const std::vector<Operand>> arrays) {
  if (static_cast<int>(arrays.size()) != size()) {
    throw ShapeError(
        fmt::format("all_reduce: {} lists of arrays for a group of {}", arrays.size(), size()));
  }
  // All checks come before the first rank is queued: it would wait for the others for ever.
  std::vector<AllReduce> operations;
  for (int rank = 0; rank < size(); ++rank) {
    operations.push_back(operation(rank, arrays[static_cast<std::size_t>(rank)]));
    check_alike(operations.front(), operations.back());
  }
  NcclGroup group;
  for (AllReduce& all_reduce : operations) launch(all_reduce);
  group.end();
}

}  // namespace rensa::cuda

namespace rensa::operations {

void AllReduce::run_cuda(const cuda::LaunchContext& context) {
  using namespace cuda;
  ncclComm_t communicator = group->impl_->communicators[static_cast<std::size_t>(rank)];
  NcclGroup together;
  for (const Operand& array : arrays) {
    char* data = array.view.data;
    check_nccl("ncclAllReduce",
               nccl().all_reduce(data, data, static_cast<std::size_t>(array.view.size()),
                                 nccl_type(array.view.dtype), ncclSum, communicator,
                                 static_cast<cudaStream_t>(context.handle)));
  }
  together.end();
}

}  // namespace rensa::operations

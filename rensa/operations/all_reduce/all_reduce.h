// Sums over the GPUs of one process.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "rensa/device/kind.h"

namespace rensa::operations {
struct AllReduce;
}  // namespace rensa::operations

namespace rensa::cuda {

/// Communicators of NCCL, one per GPU. Either one thread per GPU calls sum(rank, ...), each for its
/// own rank and all for arrays of the same sizes in the same order, or one thread calls sum_all.
class AllReduceGroup {
 public:
  /// Rank i is devices[i]. Throws DeviceError for anything but different GPUs, CudaError where NCCL
  /// is missing.
  explicit AllReduceGroup(std::vector<Device> devices);
  /// Waits for what the GPUs have queued.
  ~AllReduceGroup();
  AllReduceGroup(const AllReduceGroup&) = delete;
  AllReduceGroup& operator=(const AllReduceGroup&) = delete;

  int size() const { return static_cast<int>(devices_.size()); }
  Device device(int rank) const { return devices_.at(static_cast<std::size_t>(rank)); }

  /// Replaces each array by its sum over the ranks: C-contiguous float16, bfloat16, float32 or
  /// float64 on device(rank). Queued on the current stream of that device; the bits are the same on
  /// all ranks. Throws DeviceError, DtypeError, ShapeError, CudaError.
  void sum(int rank, std::span<const Operand> arrays);
  /// The same for all ranks at once, arrays[rank] being rank's; called by one thread.
  void sum_all(std::span<const std::vector<Operand>> arrays);

 private:
  friend struct operations::AllReduce;
  struct Impl;
  operations::AllReduce operation(int rank, std::span<const Operand> arrays);  // checks

  std::vector<Device> devices_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rensa::cuda

namespace rensa::operations {

/// The operation behind cuda::AllReduceGroup::sum. The group must outlive it, and every recording
/// of it.
struct AllReduce final : KindOf<AllReduce> {
  AllReduce() : KindOf("all_reduce") {}
  cuda::AllReduceGroup* group = nullptr;
  int rank = 0;
  std::vector<Operand> arrays;

  template <class V> void fields(V& v) {
    for (Operand& array : arrays) v.write(array);
    v.number(group, rank);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa::operations

// The collectives of a build without CUDA.
#include "rensa/operations/all_reduce/all_reduce.h"

#include "rensa/core/error.h"

namespace rensa::cuda {

struct AllReduceGroup::Impl {};

AllReduceGroup::AllReduceGroup(std::vector<Device> devices) : devices_(std::move(devices)) {
  throw DeviceError("all_reduce: this build of Rensa has no CUDA and so no GPUs to sum over");
}

AllReduceGroup::~AllReduceGroup() = default;

void AllReduceGroup::sum_all(std::span<const std::vector<Operand>>) {}

}  // namespace rensa::cuda

// What of the collectives needs no NCCL: the checks and the launch.
#include "rensa/operations/all_reduce/all_reduce.h"

#include <fmt/format.h>

#include "rensa/core/error.h"
#include "rensa/device/launcher.h"

namespace rensa::cuda {

using operations::AllReduce;

AllReduce AllReduceGroup::operation(int rank, std::span<const Operand> arrays) {
  if (rank < 0 || rank >= size()) {
    throw IndexError(fmt::format("all_reduce: rank {} of a group of {}", rank, size()));
  }
  AllReduce all_reduce;
  all_reduce.group = this;
  all_reduce.rank = rank;
  all_reduce.arrays.assign(arrays.begin(), arrays.end());
  for (const Operand& array : arrays) {
    const ArrayView& view = array.view;
    if (view.device != device(rank)) {
      throw DeviceError(fmt::format("all_reduce: rank {} is {}, but got {}; move it with .to(...)",
                                    rank, device(rank).str(), view.describe()));
    }
    if (dtype_kind(view.dtype) != 'f') {
      throw DtypeError(fmt::format("all_reduce: sums floating arrays, got {}", view.describe()));
    }
    if (!view.is_c_contiguous()) {
      throw ShapeError(
          fmt::format("all_reduce: works in place on C-contiguous arrays, got {} with "
                      "strides {}; pass its ascontiguous()",
                      view.describe(), view.strides.str()));
    }
  }
  return all_reduce;
}

void AllReduceGroup::sum(int rank, std::span<const Operand> arrays) {
  AllReduce all_reduce = operation(rank, arrays);
  launch(all_reduce);
}

}  // namespace rensa::cuda

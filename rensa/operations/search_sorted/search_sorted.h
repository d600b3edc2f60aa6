// Where values stand among sorted ones. The arrays are C-contiguous.
#pragma once

#include "rensa/device/kind.h"

namespace rensa::operations {

/// positions[i] = how many elements of `sorted` (one-dimensional) stand before values[i]: those
/// that are less, with `right` those that are not greater. Both have one dtype, positions is int64.
/// `sorter` (int64, may be absent) lists the places of `sorted`'s elements in ascending order;
/// those out of range are taken for the nearest. `either_way`: where the last element is less than
/// the first, `sorted` falls. With `found` (bool) in place of positions: found[i] = whether an
/// element of `sorted` equals values[i], which no NaN does; the other way round with `invert`.
struct SearchSorted final : KindOf<SearchSorted> {
  using KindOf::KindOf;
  bool right = false, either_way = false, invert = false;
  Operand sorted, values, sorter, positions, found;

  template <class V> void fields(V& v) {
    v.read(sorted, values, sorter), v.write(positions, found), v.number(right, either_way, invert);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa::operations

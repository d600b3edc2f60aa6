// What the kernels of ordered scatters share: sorted lists of indices, and combining rows by them.
#pragma once

#include <algorithm>

#include "rensa/operations/indexing/cuda_list.cuh"

namespace rensa::cuda {

inline constexpr int kCombineColumns = 4;  // of one thread that combines
inline constexpr int kCombineLanes = 64;   // threads side by side in a row, at most

/// The indices of a list by the place they lead to: keys ascending, and which index each belongs
/// to.
struct SortedList {
  const void* keys = nullptr;  // unsigned, or unsigned long long where `wide`
  const unsigned* order = nullptr;
  unsigned long long invalid = 0;  // the key of indices out of range, greater than all others
  unsigned count = 0;
  bool wide = false;

#if defined(__CUDACC__)
  __device__ __forceinline__ unsigned long long key(unsigned j) const {
    return wide ? static_cast<const unsigned long long*>(keys)[j]
                : static_cast<const unsigned*>(keys)[j];
  }
  // The first position of [begin, end) whose key is not below (`above`: above) `key`, or end.
  __device__ unsigned bound(unsigned long long key, unsigned begin, unsigned end,
                            bool above) const {
    while (begin < end) {
      unsigned middle = begin + (end - begin) / 2;
      unsigned long long at = this->key(middle);
      if (at < key || (above && at == key)) begin = middle + 1;
      else end = middle;
    }
    return begin;
  }
#endif
};

/// Whether a sorted key is the number that an index gives: one index array alone steers.
inline bool numbers_places_by_index(const operations::IndexPlan& plan) {
  return plan.count == 1 && std::all_of(plan.along.strides.begin(), plan.along.strides.end(),
                                        [](std::int64_t s) { return s == 0; });
}

/// The largest unit that pointers and strides allow.
inline int unit_of(const operations::IndexPlan& plan, const ArrayView& listed,
                   const ArrayView& indexed) {
  int size = static_cast<int>(itemsize(listed.dtype)), last = listed.ndim() - 1;
  if (listed.strides[last] != size || indexed.strides[last] != size) return size;
  auto bits = reinterpret_cast<std::uintptr_t>(listed.data) |
              reinterpret_cast<std::uintptr_t>(indexed.data) |
              static_cast<std::uintptr_t>(listed.shape[last] * size);
  auto add = [&](std::int64_t stride) { bits |= static_cast<std::uintptr_t>(stride); };
  for (int axis = 0; axis < last; ++axis) add(listed.strides[axis] | indexed.strides[axis]);
  for (std::int64_t stride : plan.list.strides) add(stride);
  for (std::int64_t stride : plan.along.strides) add(stride);
  for (int k = 0; k < plan.count; ++k) add(plan.strides[k]);
  int unit = 16;
  while (bits % static_cast<unsigned>(unit) != 0) unit /= 2;
  return unit;
}

/// Combines what `mode` says of the rows of each place, in the order of `sorted`; `partials` has
/// room for each kScatterRun-th row.
void combine_part(const char* operation, const LaunchContext& context, operations::ScatterMode mode,
                  const operations::IndexPlan& plan, const SortedList& sorted, void* partials);

}  // namespace rensa::cuda

// The kernels of sorting: keys are unsigned integers in the order wanted (core/sort_keys.h).
#pragma once

#include <cstdint>

#include "rensa/backend/cpu/instruction_sets.h"
#include "rensa/core/dtype.h"

namespace rensa::host {

/// Sorting of plain keys by vector instructions; null in the sets without them.
template <class Key> struct KeySorting {
  /// Sorts keys in place, ascending.
  void (*sort)(Key* keys, std::int64_t n);
  /// Puts keys to the front that are not greater than any behind them, about half of them where
  /// they differ; returns their count.
  std::int64_t (*halve)(Key* keys, std::int64_t n);
  /// Puts the key of place `kth` of the sorted ones there, nothing greater before it and nothing
  /// less behind.
  void (*select)(Key* keys, std::int64_t n, std::int64_t kth);
};

/// keys[i] = that of elements[i]; keys may lie where the elements do.
using ToKeys = void (*)(std::int64_t n, const void* elements, bool descending, bool merge_zeros,
                        void* keys);
/// The other way.
using ToElements = void (*)(std::int64_t n, const void* keys, bool descending, void* elements);

struct SortKernels {
  KeySorting<unsigned> narrow;
  KeySorting<unsigned long long> wide;
  // By the elements' dtype; null for complex ones.
  ToKeys to_keys[kNumDtypes];
  ToElements to_elements[kNumDtypes];
};
/// The kernels for best_instruction_set().
const SortKernels& sort_kernels();

RENSA_EACH_SET(SortKernels get_sort_kernels();)

// What the kernels leave keys to that come in an order made against them.
void sort_by_comparison(unsigned* keys, std::int64_t n);
void sort_by_comparison(unsigned long long* keys, std::int64_t n);
void select_by_comparison(unsigned* keys, std::int64_t n, std::int64_t kth);
void select_by_comparison(unsigned long long* keys, std::int64_t n, std::int64_t kth);

}  // namespace rensa::host

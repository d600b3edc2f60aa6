// Labels and single numbers as the CPU reads and writes them.
#pragma once

#include <vector>

#include "rensa/backend/cpu/kernel_sources.h"
#include "rensa/backend/cpu/strided.h"
#include "rensa/portable/element_types.h"

namespace rensa::host {

inline std::vector<long long> read_labels(const ArrayView& t) {
  std::vector<long long> labels(static_cast<std::size_t>(t.size()));
  kernels().load_of(t.dtype, ComputeType::i64)(t.size(), t.data, itemsize(t.dtype), labels.data());
  return labels;
}

template <class V> V read_number(const ArrayView& view) {
  V value;
  kernels().load_of(view.dtype, compute_type_of<V>)(1, view.data, 0, &value);
  return value;
}

template <class V> void write_number(const ArrayView& view, V value) {
  kernels().store_of(view.dtype, compute_type_of<V>)(1, &value, view.data, 0);
}

}  // namespace rensa::host

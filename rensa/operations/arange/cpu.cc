// Arange on the CPU.
#include "rensa/operations/arange/arange.h"

#include <algorithm>
#include <type_traits>

#include "rensa/backend/cpu/strided.h"
#include "rensa/core/thread_pool.h"
#include "rensa/portable/element_types.h"

namespace rensa::host {

namespace {

constexpr std::int64_t kGrain = 8 * kChunk;

// values[i] = start + (begin + i) * step
template <class V> void count_up(std::int64_t begin, std::int64_t n, V start, V step, V* values) {
  if constexpr (std::is_integral_v<V>) {
    V value = start + static_cast<V>(begin) * step;
    for (std::int64_t i = 0; i < n; ++i, value += step) values[i] = value;
  } else {
    for (std::int64_t i = 0; i < n; ++i) values[i] = start + static_cast<V>(begin + i) * step;
  }
}

template <class V> void fill_arange(const operations::Arange& op, V start, V step) {
  const ArrayView& out = op.out.view;
  StoreKernel store = kernels().store_of(out.dtype, compute_type_of<V>);
  std::int64_t stride = out.strides[0];
  bool whole = std::is_integral_v<V> && itemsize(out.dtype) == sizeof(V);  // of either sign
  bool in_place = stride == sizeof(V) && (whole || out.dtype == value_dtype(compute_type_of<V>));
  parallel_for(out.size(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    if (in_place) return count_up(begin, end - begin, start, step, out.as<V>() + begin);
    V values[kChunk];
    for (; begin < end; begin += kChunk) {
      std::int64_t n = std::min(kChunk, end - begin);
      count_up(begin, n, start, step, values);
      store(n, values, out.data + begin * stride, stride);
    }
  });
}

}  // namespace

}  // namespace rensa::host

namespace rensa::operations {

void Arange::run_cpu() {
  char kind = dtype_kind(out.view.dtype);
  if (start.is_integral() && step.is_integral() && kind != 'f' && kind != 'c') {
    return host::fill_arange(*this, start.as<unsigned long long>(), step.as<unsigned long long>());
  }
  host::fill_arange(*this, start.real(), step.real());
}

}  // namespace rensa::operations

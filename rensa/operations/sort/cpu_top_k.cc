// The first of sorted rows on the CPU.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "rensa/core/sort_keys.h"
#include "rensa/core/thread_pool.h"
#include "rensa/operations/sort/top_k.h"

namespace rensa::host {

namespace {

template <class T> void find_top(const operations::TopK& op) {
  constexpr std::int64_t kGrain = 4 << 10;  // elements that are worth waking a thread for
  std::int64_t rows = op.in.view.shape[0], n = op.in.view.shape[1], k = op.order.view.shape[1];
  KeyOf<T> flip = op.descending ? KeyOf<T>(~KeyOf<T>(0)) : KeyOf<T>(0);
  parallel_for(rows, std::max<std::int64_t>(1, kGrain / n), [&](auto begin, auto end) {
    std::vector<std::uint64_t> keys(static_cast<std::size_t>(n));  // and places below them
    for (std::int64_t row = begin; row < end; ++row) {
      const T* in = op.in.view.as<T>() + row * n;
      auto* order = op.order.view.as<std::int64_t>() + row * k;
      for (std::int64_t i = 0; i < n; ++i) {
        std::uint64_t key = KeyOf<T>(sort_key(in[i], true) ^ flip);
        keys[static_cast<std::size_t>(i)] = key << 32 | static_cast<std::uint64_t>(i);
      }
      std::partial_sort(keys.begin(), keys.begin() + k, keys.end());
      for (std::int64_t j = 0; j < k; ++j) {
        order[j] = static_cast<std::int64_t>(keys[static_cast<std::size_t>(j)] & 0xffffffffu);
      }
    }
  });
}

}  // namespace

}  // namespace rensa::host

namespace rensa::operations {

void TopK::run_cpu() {
  if (order.view.size() == 0) return;
  switch (in.view.dtype) {
    case Dtype::float16: return host::find_top<half_t>(*this);
    case Dtype::bfloat16: return host::find_top<bfloat16_t>(*this);
    default: return host::find_top<float>(*this);
  }
}

}  // namespace rensa::operations

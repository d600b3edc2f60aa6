// Which integers an array holds, on the CPU.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <type_traits>

#include "rensa/core/thread_pool.h"
#include "rensa/operations/mark_present/mark_present.h"

namespace rensa::operations {

void MarkPresent::run_cpu() {
  auto* marks = flags.view.as<std::uint8_t>();
  std::fill_n(marks, flags.view.size(), std::uint8_t{0});
  visit_dtype(in.view.dtype, [&](auto element) {
    using T = decltype(element);
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      const T* values = in.view.as<const T>();
      parallel_for(in.view.size(), 1 << 16, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          std::uint64_t at =
              static_cast<std::uint64_t>(values[i]) - static_cast<std::uint64_t>(low);
          std::atomic_ref<std::uint8_t> mark(marks[at]);  // threads may write it at a time
          if (!mark.load(std::memory_order_relaxed)) mark.store(1, std::memory_order_relaxed);
        }
      });
    }
  });
}

}  // namespace rensa::operations

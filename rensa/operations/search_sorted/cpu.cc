// Binary search on the CPU.
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "rensa/core/sort_keys.h"
#include "rensa/core/thread_pool.h"
#include "rensa/operations/search_sorted/search_sorted.h"

namespace rensa::host {

namespace {

// Narrow floats are compared as float.
template <class T> auto comparable(T x) {
  if constexpr (detail::FloatBits<T>::infinity != 0 && sizeof(T) == 2) return static_cast<float>(x);
  else if constexpr (std::is_integral_v<T> && std::is_unsigned_v<T>)
    return static_cast<unsigned long long>(x);
  else if constexpr (std::is_integral_v<T>) return static_cast<long long>(x);
  else return x;
}

template <class T> void search(const operations::SearchSorted& op) {
  std::int64_t n = op.sorted.view.size();
  const T* sorted = op.sorted.view.as<T>();
  const T* values = op.values.view.as<T>();
  const auto* sorter = op.sorter.present() ? op.sorter.view.as<std::int64_t>() : nullptr;
  bool* found = op.found.present() ? op.found.view.as<bool>() : nullptr;
  auto* positions = found ? nullptr : op.positions.view.as<std::int64_t>();
  auto at = [&](std::int64_t i) {
    return comparable(sorted[sorter ? std::clamp<std::int64_t>(sorter[i], 0, n - 1) : i]);
  };
  bool falls = op.either_way && n > 0 && sorts_before(at(n - 1), at(0));
  parallel_for(op.values.view.size(), 4096, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      auto value = comparable(values[i]);
      std::int64_t low = 0, high = n;
      while (low < high) {
        std::int64_t middle = low + (high - low) / 2;
        auto element = at(falls ? n - 1 - middle : middle);
        bool before = op.right ? !sorts_before(value, element) : sorts_before(element, value);
        (before ? low : high) = before ? middle + 1 : middle;
      }
      if (found) found[i] = (low < n && at(low) == value) != op.invert;
      else positions[i] = falls ? n - low : low;
    }
  });
}

}  // namespace

}  // namespace rensa::host

namespace rensa::operations {

void SearchSorted::run_cpu() {
  visit_dtype(sorted.view.dtype, [&](auto element) {
    using T = decltype(element);
    if constexpr (requires { typename T::value_type; }) {
      host::search<complex_t<typename T::value_type>>(*this);
    } else {
      host::search<T>(*this);
    }
  });
}

}  // namespace rensa::operations

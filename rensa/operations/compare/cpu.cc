// Comparisons with a tolerance on the CPU.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "rensa/backend/cpu/strided.h"
#include "rensa/core/thread_pool.h"
#include "rensa/operations/compare/compare.h"
#include "rensa/portable/element_types.h"

namespace rensa::operations {

namespace {

constexpr std::int64_t kGrain = 32 << 10;  // elements that are worth waking a thread for

// Calls f(begin, n, a's values, b's values) for chunks of [begin, end) as long as it says true.
template <class V, class F>
void for_chunks(const host::Reader& a, const host::Reader& b, std::int64_t begin, std::int64_t end,
                F f) {
  host::Scratch scratch[2];
  for (; begin < end; begin += host::kChunk) {
    std::int64_t n = std::min(host::kChunk, end - begin);
    auto* x = static_cast<const V*>(a.read(begin, n, scratch[0]));
    auto* y = static_cast<const V*>(b.read(begin, n, scratch[1]));
    if (!f(begin, n, x, y)) return;
  }
}

// Whether alike(begin, end) holds for all of [0, n), which is looked at in parts until one differs.
// The first values, which often settle it, are not worth waking a thread.
template <class F> bool all_alike(std::int64_t n, std::int64_t grain, const F& alike) {
  std::int64_t first = std::min(n, host::kChunk);
  if (!alike(std::int64_t{0}, first)) return false;
  std::atomic<bool> same{true};
  parallel_for(n - first, grain, [&](std::int64_t begin, std::int64_t end) {
    if (same.load(std::memory_order_relaxed) && !alike(first + begin, first + end)) same = false;
  });
  return same;
}

// The same of pairs of values, by `close`.
template <class V, class F> bool all_pairs(const Operand& a, const Operand& b, const F& close) {
  ComputeType type = compute_type_of<V>;
  host::Reader left(a.view, type), right(b.view, type);
  return all_alike(a.view.size(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    int differs = 0;
    for_chunks<V>(left, right, begin, end,
                  [&](std::int64_t, std::int64_t n, const V* x, const V* y) {
                    for (std::int64_t i = 0; i < n; ++i) differs |= !close(x[i], y[i]);
                    return differs == 0;
                  });
    return differs == 0;
  });
}

// Whether all are equal as values of V: what closeness means where both tolerances are 0.
template <class V> bool all_equal(const Operand& a, const Operand& b, bool equal_nan) {
  return equal_nan ? all_pairs<V>(a, b, [](V x, V y) { return (x == y) | (!(x == x) & !(y == y)); })
                   : all_pairs<V>(a, b, [](V x, V y) { return x == y; });
}

}  // namespace

void IsClose::run_cpu() {
  host::Reader left(a.view, ComputeType::f64), right(b.view, ComputeType::f64);
  auto* results = reinterpret_cast<bool*>(out.view.data);
  Closeness close = closeness;
  parallel_for(out.view.size(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    for_chunks<double>(left, right, begin, end,
                       [&](std::int64_t at, std::int64_t n, const double* x, const double* y) {
                         for (std::int64_t i = 0; i < n; ++i) results[at + i] = close(x[i], y[i]);
                         return true;
                       });
  });
}

void AllClose::run_cpu() {
  bool same;
  if (bits) {
    same = all_alike(a.view.nbytes(), kGrain * 8, [&](std::int64_t begin, std::int64_t end) {
      auto count = static_cast<std::size_t>(end - begin);
      return std::memcmp(a.view.data + begin, b.view.data + begin, count) == 0;
    });
  } else if (closeness.rtol == 0 && closeness.atol == 0) {
    bool wide = compute_type(a.view.dtype) == ComputeType::f64;
    same = wide ? all_equal<double>(a, b, closeness.equal_nan)
                : all_equal<float>(a, b, closeness.equal_nan);
  } else {
    same = all_pairs<double>(a, b, closeness);
  }
  *reinterpret_cast<bool*>(out.view.data) = same;
}

}  // namespace rensa::operations

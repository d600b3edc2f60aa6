// Comparisons with a tolerance on the CPU.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "rensa/backend/cpu/strided.h"
#include "rensa/core/thread_pool.h"
#include "rensa/device/compare_operations.h"

namespace rensa {

namespace {

constexpr std::int64_t kGrain = 32 << 10;  // elements that are worth waking a thread for

// Calls f(begin, n, a's values, b's values) for chunks of [begin, end) as long as it says true.
template <class F>
void for_chunks(const host::Reader& a, const host::Reader& b, std::int64_t begin, std::int64_t end,
                F f) {
  host::Scratch scratch[2];
  for (; begin < end; begin += host::kChunk) {
    std::int64_t n = std::min(host::kChunk, end - begin);
    auto* x = static_cast<const double*>(a.read(begin, n, scratch[0]));
    auto* y = static_cast<const double*>(b.read(begin, n, scratch[1]));
    if (!f(begin, n, x, y)) return;
  }
}

}  // namespace

void IsClose::run_cpu() {
  host::Reader left(a.view, ComputeType::f64), right(b.view, ComputeType::f64);
  auto* results = reinterpret_cast<bool*>(out.view.data);
  Closeness close = closeness;
  parallel_for(out.view.size(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    for_chunks(left, right, begin, end,
               [&](std::int64_t at, std::int64_t n, const double* x, const double* y) {
                 for (std::int64_t i = 0; i < n; ++i) results[at + i] = close(x[i], y[i]);
                 return true;
               });
  });
}

void AllClose::run_cpu() {
  std::atomic<bool> same{true};
  if (bits) {
    parallel_for(a.view.nbytes(), kGrain * 8, [&](std::int64_t begin, std::int64_t end) {
      auto count = static_cast<std::size_t>(end - begin);
      if (same && std::memcmp(a.view.data + begin, b.view.data + begin, count) != 0) same = false;
    });
  } else {
    host::Reader left(a.view, ComputeType::f64), right(b.view, ComputeType::f64);
    Closeness close = closeness;
    parallel_for(a.view.size(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      for_chunks(left, right, begin, end,
                 [&](std::int64_t, std::int64_t n, const double* x, const double* y) {
                   bool all = true;
                   for (std::int64_t i = 0; i < n; ++i) all &= close(x[i], y[i]);
                   if (!all) same = false;
                   return same.load();
                 });
    });
  }
  *reinterpret_cast<bool*>(out.view.data) = same;
}

}  // namespace rensa

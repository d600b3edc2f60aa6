// Linear recurrences on the CPU.
#include <algorithm>
#include <cstdint>

#include "rensa/core/thread_pool.h"
#include "rensa/operations/scan/recurrence.h"

namespace rensa::host {

namespace {

template <class V> void recur(const operations::Recurrence& op) {
  constexpr std::int64_t kGrain = 8 << 10;  // elements that are worth waking a thread for
  std::int64_t rows = op.in.view.shape[0], n = op.in.view.shape[1];
  parallel_for(rows, std::max<std::int64_t>(1, kGrain / n), [&](auto begin, auto end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const V *in = op.in.view.as<V>() + row * n, *factor = op.factor.view.as<V>() + row * n;
      V* out = op.out.view.as<V>() + row * n;
      V behind = out[n - 1] = in[n - 1];
      for (std::int64_t i = n - 1; i-- > 0;) out[i] = behind = in[i] + factor[i + 1] * behind;
    }
  });
}

}  // namespace

}  // namespace rensa::host

namespace rensa::operations {

void Recurrence::run_cpu() {
  if (in.view.size() == 0) return;
  in.view.dtype == float64 ? host::recur<double>(*this) : host::recur<float>(*this);
}

}  // namespace rensa::operations

// Linear recurrences on the CPU.
#include <algorithm>
#include <cstdint>

#include "rensa/core/thread_pool.h"
#include "rensa/operations/scan/recurrence.h"
#include "rensa/portable/element_types.h"

namespace rensa::host {

namespace {

template <class T> void recur(const operations::Recurrence& op) {
  using V = ComputeOf<T>;
  constexpr std::int64_t kGrain = 8 << 10;  // elements that are worth waking a thread for
  std::int64_t rows = op.factor.view.shape[0], n = op.factor.view.shape[1];
  std::int64_t given = op.in.view.shape[1];
  parallel_for(rows, std::max<std::int64_t>(1, kGrain / n), [&](auto begin, auto end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const T *in = op.in.view.as<T>() + row * given, *factor = op.factor.view.as<T>() + row * n;
      T* out = op.out.view.as<T>() + row * n;
      V behind = convert<V>(in[given - 1]);
      out[n - 1] = convert<T>(behind);
      for (std::int64_t i = n - 1; i-- > 0;) {
        V add = given == n ? convert<V>(in[i]) : V(0);
        behind = add + convert<V>(factor[i + 1]) * behind;
        out[i] = convert<T>(behind);
      }
    }
  });
}

}  // namespace

}  // namespace rensa::host

namespace rensa::operations {

void Recurrence::run_cpu() {
  if (out.view.size() == 0) return;
  visit_floating(out.view.dtype, [&](auto element) { host::recur<decltype(element)>(*this); });
}

}  // namespace rensa::operations

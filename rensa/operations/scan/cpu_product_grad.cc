// Products of all elements of a row but one, on the CPU.
#include <algorithm>
#include <cstdint>

#include "rensa/core/thread_pool.h"
#include "rensa/operations/scan/product_grad.h"
#include "rensa/portable/element_types.h"

namespace rensa::host {

namespace {

template <class T> void multiply_others(const operations::ProductGrad& op) {
  using V = ComputeOf<T>;
  constexpr std::int64_t kGrain = 8 << 10;  // elements that are worth waking a thread for
  std::int64_t rows = op.in.view.shape[0], n = op.in.view.shape[1];
  parallel_for(rows, std::max<std::int64_t>(1, kGrain / n), [&](auto begin, auto end) {
    V behind[operations::ProductGrad::kMost];
    for (std::int64_t row = begin; row < end; ++row) {
      const T* in = op.in.view.as<T>() + row * n;
      T* out = op.out.view.as<T>() + row * n;
      V running = convert<V>(op.scale.view.as<T>()[row]);
      for (std::int64_t i = n; i-- > 0;) {
        behind[i] = running;
        running *= convert<V>(in[i]);
      }
      running = V(1);
      for (std::int64_t i = 0; i < n; ++i) {
        out[i] = convert<T>(running * behind[i]);
        running *= convert<V>(in[i]);
      }
    }
  });
}

}  // namespace

}  // namespace rensa::host

namespace rensa::operations {

void ProductGrad::run_cpu() {
  if (out.view.size() == 0) return;
  visit_floating(out.view.dtype,
                 [&](auto element) { host::multiply_others<decltype(element)>(*this); });
}

}  // namespace rensa::operations

// Binary accuracy on the CPU.
#include <algorithm>
#include <atomic>

#include "rensa/backend/cpu/strided.h"
#include "rensa/core/thread_pool.h"
#include "rensa/functions/operations/binary_accuracy/binary_accuracy.h"
#include "rensa/functions/operations/softmax_cross_entropy/cpu_labels.h"
#include "rensa/portable/element_types.h"

namespace rensa::operations {

namespace {

constexpr std::int64_t kGrain = 32 << 10;  // elements that are worth waking a thread for

template <class V> double share_of(const ArrayView& y, const ArrayView& t) {
  host::Reader scores(y, compute_type_of<V>), labels(t, ComputeType::i64);
  std::atomic<std::int64_t> right{0}, counted{0};
  parallel_for(y.size(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    host::Scratch scratch[2];
    std::int64_t met = 0, there = 0;
    for (; begin < end; begin += host::kChunk) {
      std::int64_t n = std::min(host::kChunk, end - begin);
      auto* score = static_cast<const V*>(scores.read(begin, n, scratch[0]));
      auto* label = static_cast<const long long*>(labels.read(begin, n, scratch[1]));
      for (std::int64_t i = 0; i < n; ++i) {
        met += label[i] == (score[i] >= V(0) ? 1 : 0);
        there += label[i] != -1;
      }
    }
    right += met;
    counted += there;
  });
  return counted > 0 ? static_cast<double>(right) / static_cast<double>(counted) : 0.0;
}

}  // namespace

void BinaryAccuracy::run_cpu() {
  bool wide = compute_type(y.view.dtype) == ComputeType::f64;
  double share = wide ? share_of<double>(y.view, t.view) : share_of<float>(y.view, t.view);
  host::write_number(accuracy.view, share);
}

}  // namespace rensa::operations

// Dropout on the CPU.
#include "rensa/functions/operations/dropout/dropout.h"

#include "rensa/operations/random/cpu_philox.h"

namespace rensa::host {

namespace {

template <class V> void drop(const operations::Dropout& op) {
  constexpr ComputeType kType = compute_type_of<V>;
  V keep = V(1) - static_cast<V>(op.ratio);
  std::int32_t least = least_kept(static_cast<float>(op.ratio));
  const ArrayView& in = op.in.view;
  std::int64_t size = itemsize(in.dtype);
  for_each_chunk(in.size(), 1, op.seed, op.offset,
                 [&](std::int64_t begin, std::int64_t n, const std::uint32_t* words) {
                   V values[kChunk];
                   kernels().load_of(in.dtype, kType)(n, in.data + begin * size, size, values);
                   for (std::int64_t i = 0; i < n; ++i) {
                     V kept = values[i] / keep;
                     values[i] = is_kept(words[i], least) ? kept : V(0);
                   }
                   store_chunk(op.out.view, begin, n, values);
                 });
}

}  // namespace

}  // namespace rensa::host

namespace rensa::operations {

void Dropout::run_cpu() {
  in.view.dtype == float64 ? host::drop<double>(*this) : host::drop<float>(*this);
}

}  // namespace rensa::operations

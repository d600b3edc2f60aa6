// The randomized leaky rectifier on the CPU.
#include "rensa/functions/operations/random_slopes/random_slopes.h"

#include "rensa/operations/random/cpu_philox.h"

namespace rensa::host {

namespace {

template <class V> void rectify(const operations::RandomSlopes& op) {
  constexpr ComputeType kType = compute_type_of<V>;
  auto low = static_cast<float>(op.low), span = static_cast<float>(op.high) - low;
  const ArrayView& in = op.in.view;
  std::int64_t size = itemsize(in.dtype);
  for_each_chunk(in.size(), 1, op.seed, op.offset,
                 [&](std::int64_t begin, std::int64_t n, const std::uint32_t* words) {
                   float slopes[kChunk];
                   V values[kChunk], rounded[kChunk];
                   for (std::int64_t i = 0; i < n; ++i) {
                     slopes[i] = low + span * uniform_float(words[i]);
                   }
                   store_chunk(op.r.view, begin, n, slopes);
                   auto* load = kernels().load_of(in.dtype, kType);
                   load(n, op.r.view.data + begin * size, size, rounded);
                   load(n, in.data + begin * size, size, values);
                   for (std::int64_t i = 0; i < n; ++i) {
                     V product = rounded[i] * values[i];
                     values[i] = values[i] < V(0) ? product : values[i];
                   }
                   store_chunk(op.out.view, begin, n, values);
                 });
}

}  // namespace

}  // namespace rensa::host

namespace rensa::operations {

void RandomSlopes::run_cpu() {
  in.view.dtype == float64 ? host::rectify<double>(*this) : host::rectify<float>(*this);
}

}  // namespace rensa::operations

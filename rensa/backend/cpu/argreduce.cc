// argmax and argmin on the CPU: the extremum of a chunk is found by the vectorized reduction, its
// position is looked for only in chunks that improve on what came before.
#include "rensa/backend/cpu/argreduce.h"

#include <algorithm>

#include "rensa/backend/cpu/convert.h"
#include "rensa/backend/cpu/kernel_sources.h"
#include "rensa/backend/cpu/strided.h"
#include "rensa/core/thread_pool.h"

namespace rensa::host {

namespace {

constexpr std::int64_t kGrain = 16 << 10;

template <class V>
std::int64_t find_extremum(const Reader& reader, std::int64_t n, const ReduceKernels& extremum,
                           bool greatest) {
  Scratch scratch;
  V best = V(0);
  std::int64_t position = -1;
  for (std::int64_t begin = 0; begin < n; begin += kChunk) {
    std::int64_t count = std::min(kChunk, n - begin);
    const V* x = static_cast<const V*>(reader.read(begin, count, scratch));
    V found;
    extremum.leaf(count, x, &found);
    bool is_nan = found != found;
    bool better = position < 0 || is_nan || (greatest ? best < found : found < best);
    if (!better) continue;
    best = found;
    position =
        begin + (std::find_if(x, x + count, [&](V v) { return is_nan ? v != v : v == found; }) - x);
    if (is_nan) break;
  }
  return position;
}

}  // namespace

void run_argreduce(Reduction reduction, ComputeType type, const SplitAxes& split) {
  bool greatest = reduction == Reduction::argmax;
  const ReduceKernels& extremum = kernels().of(greatest ? Reduction::max : Reduction::min, type);
  std::int64_t n = split.reduced.size();
  parallel_for(split.kept_in.size(), std::max<std::int64_t>(1, kGrain / n),
               [&](std::int64_t begin, std::int64_t end) {
                 Reader reader(split.reduced, type);
                 for (std::int64_t i = begin; i < end; ++i) {
                   reader.move_to(split.reduced.data + offset_of(split.kept_in, i));
                   long long position = visit_compute_type(type, [&](auto v) -> long long {
                     using V = decltype(v);
                     if constexpr (m::is_complex<V>::value)
                       return -1;  // refused by reduction_types
                     else return find_extremum<V>(reader, n, extremum, greatest);
                   });
                   kernels().store_of(split.kept_out.dtype, ComputeType::i64)(
                       1, &position, split.kept_out.data + offset_of(split.kept_out, i), 0);
                 }
               });
}

}  // namespace rensa::host

// argmax and argmin on the CPU: the extremum of a chunk is found by the vectorized reduction, its
// position is looked for only in chunks that improve on what came before.
#include "rensa/operations/reduce/cpu_argreduce.h"

#include <algorithm>
#include <vector>

#include "rensa/backend/cpu/kernel_sources.h"
#include "rensa/backend/cpu/strided.h"
#include "rensa/core/thread_pool.h"
#include "rensa/operations/reduce/cpu_kernels.h"
#include "rensa/portable/element_types.h"
#include "rensa/portable/launch_plan.h"

namespace rensa::host {

namespace {

constexpr std::int64_t kGrain = 16 << 10;

template <class V> struct Found {
  V value = V(0);
  std::int64_t position = -1;

  // Whether `other`, from further on, comes before it: a first NaN, or what is beyond it.
  bool gives_way_to(V other, bool greatest) const {
    if (position < 0) return true;
    if (value != value) return false;
    return other != other || (greatest ? value < other : other < value);
  }
};

template <class V>
Found<V> find_extremum(const Reader& reader, std::int64_t begin, std::int64_t end,
                       const ReduceKernels& extremum, bool greatest) {
  Scratch scratch;
  Found<V> best;
  for (; begin < end; begin += kChunk) {
    std::int64_t count = std::min(kChunk, end - begin);
    const V* x = static_cast<const V*>(reader.read(begin, count, scratch));
    V found;
    extremum.leaf(count, x, &found);
    bool is_nan = found != found;
    if (!best.gives_way_to(found, greatest)) continue;
    auto at = std::find_if(x, x + count, [&](V v) { return is_nan ? v != v : v == found; });
    best = {found, begin + (at - x)};
    if (is_nan) break;
  }
  return best;
}

template <class V> void find_all(bool greatest, const SplitAxes& split) {
  ComputeType type = compute_type_of<V>;
  const ReduceKernels& extremum =
      reduce_kernels().of(greatest ? reduction::max : reduction::min, type);
  StoreKernel store = kernels().store_of(split.kept_out.dtype, ComputeType::i64);
  std::int64_t n = split.reduced.size(), outputs = split.kept_in.size();
  std::int64_t parts = plan_outputs(outputs, n).parts;
  auto finish = [&](std::int64_t output, const Found<V>& found) {
    long long position = found.position;
    store(1, &position, split.kept_out.data + offset_of(split.kept_out, output), 0);
  };
  std::vector<Found<V>> partials(static_cast<std::size_t>(parts > 1 ? outputs * parts : 0));
  std::int64_t grain = parts > 1 ? 1 : std::max<std::int64_t>(1, kGrain / n);
  parallel_for(outputs * parts, grain, [&](std::int64_t begin, std::int64_t end) {
    Reader reader(split.reduced, type);
    for (std::int64_t item = begin; item < end; ++item) {
      std::int64_t output = item / parts, first = item % parts * kReducePart;
      reader.move_to(split.reduced.data + offset_of(split.kept_in, output));
      Found<V> found = find_extremum<V>(
          reader, first, std::min<std::int64_t>(n, first + kReducePart), extremum, greatest);
      if (parts == 1) {
        finish(output, found);
      } else {
        partials[static_cast<std::size_t>(item)] = found;
      }
    }
  });
  if (parts == 1) return;
  for (std::int64_t output = 0; output < outputs; ++output) {
    Found<V> best;
    for (std::int64_t part = 0; part < parts; ++part) {
      const Found<V>& found = partials[static_cast<std::size_t>(output * parts + part)];
      if (best.gives_way_to(found.value, greatest)) best = found;
    }
    finish(output, best);
  }
}

}  // namespace

void run_argreduce(Reduction reduction, ComputeType type, const SplitAxes& split) {
  visit_compute_type(type, [&](auto v) {
    using V = decltype(v);
    // Complex numbers are refused by reduction_types.
    if constexpr (!m::is_complex<V>::value) find_all<V>(reduction == reduction::argmax, split);
  });
}

}  // namespace rensa::host

// Sums over ranks whose arrays lie in host memory.
#include <vector>

#include "rensa/core/thread_pool.h"
#include "rensa/operations/rank_sum/rank_sum.h"
#include "rensa/portable/conversion.h"
#include "rensa/portable/element_types.h"

namespace rensa::operations {

namespace {

constexpr std::int64_t kGrain = 1 << 14;  // elements that are worth a thread's while

template <class T> void add_up(std::span<const Operand> piece) {
  using V = ComputeOf<T>;
  std::vector<T*> data;
  for (const Operand& array : piece) data.push_back(reinterpret_cast<T*>(array.view.data));
  parallel_for(piece[0].view.size(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      V sum = convert<V>(data[0][i]);
      for (std::size_t rank = 1; rank < data.size(); ++rank) sum += convert<V>(data[rank][i]);
      for (T* own : data) own[i] = convert<T>(sum);
    }
  });
}

}  // namespace

void RankSum::run_cpu() {
  auto n = static_cast<std::size_t>(ranks);
  for (std::size_t first = 0; first < pieces.size(); first += n) {
    std::span<const Operand> piece(pieces.data() + first, n);
    visit_floating(piece[0].view.dtype, [&](auto zero) { add_up<decltype(zero)>(piece); });
  }
}

}  // namespace rensa::operations

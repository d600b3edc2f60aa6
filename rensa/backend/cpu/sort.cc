// The stable order of keys on the CPU.
#include <algorithm>
#include <utility>
#include <vector>

#include "rensa/backend/cpu/strided.h"
#include "rensa/device/operations.h"

namespace rensa {

void ArgsortKeys::run_cpu() {
  std::int64_t n = keys.view.size();
  // Pairs with their position order equal keys as they came.
  std::vector<std::pair<std::uint64_t, std::int64_t>> pairs(static_cast<std::size_t>(n));
  host::Reader reader(keys.view, ComputeType::u64);
  host::Scratch scratch;
  for (std::int64_t begin = 0; begin < n; begin += host::kChunk) {
    std::int64_t count = std::min(host::kChunk, n - begin);
    const auto* values = static_cast<const std::uint64_t*>(reader.read(begin, count, scratch));
    for (std::int64_t i = 0; i < count; ++i) {
      pairs[static_cast<std::size_t>(begin + i)] = {values[i], begin + i};
    }
  }
  std::sort(pairs.begin(), pairs.end());
  char* out = order.view.data;
  for (const auto& [key, position] : pairs) {
    *reinterpret_cast<std::int64_t*>(out) = position;
    out += order.view.strides[0];
  }
}

}  // namespace rensa

// Copies of several arrays on the CPU.
#include <algorithm>

#include "rensa/backend/cpu/copy.h"
#include "rensa/core/thread_pool.h"
#include "rensa/operations/copy_parts/copy_parts.h"

namespace rensa::operations {

namespace {

// Bytes that are worth a thread's while, and beyond which a part is shared out itself.
constexpr std::int64_t kGrainBytes = 256 << 10;

using Part = CopyParts::Part;

// The extent of all parts' first axis, or 0.
std::int64_t common_length(const std::vector<Part>& parts) {
  auto length = [](const Part& part) {
    const ArrayView& out = part.out.view;
    return out.ndim() > 0 ? out.shape[0] : 0;
  };
  std::int64_t first = parts.empty() ? 0 : length(parts[0]);
  bool same = std::all_of(parts.begin(), parts.end(),
                          [&](const Part& part) { return length(part) == first; });
  return same ? first : 0;
}

// Elements [begin, end) of the first axis.
ArrayView slice(ArrayView view, std::int64_t begin, std::int64_t end) {
  view.data += begin * view.strides[0];
  view.shape[0] = end - begin;
  return view;
}

}  // namespace

void CopyParts::run_cpu() {
  auto count = static_cast<std::int64_t>(parts.size());
  std::int64_t total = 0;
  for (const Part& part : parts) total += part.out.view.nbytes();
  std::int64_t mean = total / std::max<std::int64_t>(count, 1);
  auto copy = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const Part& part = parts[static_cast<std::size_t>(i)];
      host::copy_elements(part.in.view, part.out.view);
    }
  };
  if (mean < kGrainBytes) {
    return parallel_for(count, kGrainBytes / std::max<std::int64_t>(mean, 64), copy);
  }
  // Parts may lie between each other's elements: a bit of all of them before the next, so that the
  // lines that they share stay in the cache.
  std::int64_t length = common_length(parts);
  if (length * kGrainBytes < 8 * total || total < 8 * kGrainBytes) return copy(0, count);
  parallel_for(length, length * kGrainBytes / total, [&](std::int64_t begin, std::int64_t end) {
    for (const Part& part : parts) {
      host::copy_elements(slice(part.in.view, begin, end), slice(part.out.view, begin, end));
    }
  });
}

}  // namespace rensa::operations

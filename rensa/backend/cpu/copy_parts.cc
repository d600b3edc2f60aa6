// Copies of several arrays on the CPU.
#include <algorithm>

#include "rensa/backend/cpu/copy.h"
#include "rensa/core/thread_pool.h"
#include "rensa/device/copy_operations.h"

namespace rensa {

namespace {
// Bytes that are worth a thread's while, and beyond which a part is shared out itself.
constexpr std::int64_t kGrainBytes = 256 << 10;
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
  if (mean >= kGrainBytes) copy(0, count);
  else parallel_for(count, kGrainBytes / std::max<std::int64_t>(mean, 64), copy);
}

}  // namespace rensa

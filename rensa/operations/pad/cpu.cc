// Padding on the CPU: one row of the output after the other.
#include <algorithm>
#include <cstring>

#include "rensa/backend/cpu/copy.h"
#include "rensa/core/thread_pool.h"
#include "rensa/operations/elementwise/cpu_elementwise.h"
#include "rensa/operations/pad/pad.h"

namespace rensa::operations {

namespace {

constexpr std::int64_t kGrainBytes = 256 << 10;  // that are worth waking a thread for
constexpr std::int64_t kPattern = 16;

void fill_run(char* to, const char (&pattern)[kPattern], std::int64_t bytes) {
  for (; bytes >= kPattern; bytes -= kPattern, to += kPattern) std::memcpy(to, pattern, kPattern);
  std::memcpy(to, pattern, static_cast<std::size_t>(bytes));
}

/// Where the elements of `in` begin that a row of the output has; null where it has none.
const char* source_of(const PadPlan& plan, std::int64_t row) {
  if (plan.last().in == 0) return nullptr;
  const char* from = plan.in;
  for (int i = plan.ndim - 2; i >= 0; --i) {
    const PadPlan::Axis& axis = plan.axes[i];
    std::int64_t place = row % axis.out - axis.before;
    if (place < 0 || place >= axis.in) return nullptr;
    from += place * axis.stride;
    row /= axis.out;
  }
  return from;
}

}  // namespace

void Pad::run_cpu() {
  if (out.view.size() == 0) return;
  PadPlan plan(*this);
  Dtype dtype = out.view.dtype;
  char pattern[kPattern];
  ArrayView numbers{pattern, dtype, out.view.device, Shape{kPattern / plan.size}, Shape{plan.size}};
  host::Input number(value);
  host::run_elementwise(ufunc::copy, dtype, &number, 1, numbers);
  const PadPlan::Axis& last = plan.last();
  std::int64_t bytes = last.out * plan.size, begin = last.before * plan.size;
  std::int64_t end = begin + last.in * plan.size;
  auto write = [&](std::int64_t first, std::int64_t stop) {
    for (std::int64_t row = first; row < stop; ++row) {
      char* to = plan.out + row * bytes;
      const char* from = source_of(plan, row);
      if (!from) {
        fill_run(to, pattern, bytes);
        continue;
      }
      fill_run(to, pattern, begin);
      if (last.stride == plan.size && end - begin < kGrainBytes) {
        host::copy_run(to + begin, from, end - begin);
      } else {
        ArrayView source{const_cast<char*>(from), dtype, in.view.device, Shape{last.in},
                         Shape{last.stride}};
        ArrayView middle{to + begin, dtype, out.view.device, Shape{last.in}, Shape{plan.size}};
        host::copy_elements(source, middle);
      }
      fill_run(to + end, pattern, bytes - end);
    }
  };
  std::int64_t rows = plan.rows();
  if (rows == 1) return write(0, 1);  // the copy is shared out itself
  parallel_for(rows, std::max<std::int64_t>(1, kGrainBytes / bytes), write);
}

}  // namespace rensa::operations

// The triangles of matrices on the CPU.
#include <algorithm>
#include <cstring>

#include "rensa/backend/cpu/copy.h"
#include "rensa/backend/cpu/strided.h"
#include "rensa/core/thread_pool.h"
#include "rensa/core/triangle.h"
#include "rensa/operations/triangle/triangle.h"

namespace rensa::operations {

namespace {

constexpr std::int64_t kGrain = 64 << 10;  // elements that are worth waking a thread for

template <class T> void copy_part(const char* in, std::int64_t stride, char* out, std::int64_t n) {
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
  if (stride == kSize) return host::copy_run(out, in, n * kSize);
  for (std::int64_t i = 0; i < n; ++i) std::memcpy(out + i * sizeof(T), in + i * stride, sizeof(T));
}

using CopyPart = void (*)(const char*, std::int64_t, char*, std::int64_t);

CopyPart copy_part_of(std::int64_t size) {
  struct Bytes16 {
    char bytes[16];
  };
  switch (size) {
    case 1: return copy_part<std::uint8_t>;
    case 2: return copy_part<std::uint16_t>;
    case 4: return copy_part<std::uint32_t>;
    case 8: return copy_part<std::uint64_t>;
    default: return copy_part<Bytes16>;
  }
}

}  // namespace

void Triangle::run_cpu() {
  int last = out.view.ndim() - 1;
  std::int64_t size = itemsize(out.view.dtype), columns = out.view.shape[last];
  std::int64_t rows = out.view.shape[last - 1], stride = in.view.strides[last];
  TriangleShape shape = {lower, k, rows, columns};
  ArrayView lines = in.view;  // the first elements of all rows
  lines.shape.erase(last);
  lines.strides.erase(last);
  CopyPart copy = copy_part_of(size);
  std::int64_t grain = std::max<std::int64_t>(1, kGrain / columns);
  parallel_for(lines.size(), grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t line = begin; line < end; ++line) {
      const char* from = in.view.data + host::offset_of(lines, line);
      char* to = out.view.data + line * columns * size;
      std::int64_t first = shape.begin(line % rows),
                   stop = std::max<std::int64_t>(first, shape.end(line % rows));
      std::memset(to, 0, static_cast<std::size_t>(first * size));
      copy(from + first * stride, stride, to + first * size, stop - first);
      std::memset(to + stop * size, 0, static_cast<std::size_t>((columns - stop) * size));
    }
  });
}

void TriangleIndices::run_cpu() {
  TriangleShape shape = {lower, k, rows, columns};
  auto* row_of = row_indices.view.as<std::int64_t>();
  auto* column_of = column_indices.view.as<std::int64_t>();
  std::int64_t grain = std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(columns, 1));
  parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t at = shape.before(begin);
    for (std::int64_t row = begin; row < end; ++row) {
      for (std::int64_t column = shape.begin(row); column < shape.end(row); ++column, ++at) {
        row_of[at] = row;
        column_of[at] = column;
      }
    }
  });
}

}  // namespace rensa::operations

// Strided copies without conversion: memcpy where both sides are contiguous, tiles where they run
// along different axes (a transposition), rows otherwise.
#include "rensa/backend/cpu/copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "rensa/backend/cpu/strided.h"
#include "rensa/core/thread_pool.h"
#include "rensa/device/operations.h"

namespace rensa::host {

namespace {

constexpr std::int64_t kCopyGrain = 256 << 10;  // bytes that are worth a thread's while
constexpr std::int64_t kTile = 32;
constexpr std::int64_t kNarrow = 8;  // columns

void copy_bytes(const char* in, char* out, std::int64_t nbytes) {
  if (in == out) return;
  parallel_for(nbytes, kCopyGrain, [=](std::int64_t begin, std::int64_t end) {
    std::memcpy(out + begin, in + begin, static_cast<std::size_t>(end - begin));
  });
}

// The two innermost axes of a pair of views, or fewer axes padded with extent 1.
struct Plane {
  std::int64_t rows, columns;
  std::int64_t in_row, in_column, out_row, out_column;  // strides
};

// Elements that lie `step` of them apart, as the compiler knows: by shuffles of vectors.
template <class T, int step> void copy_stepped(std::int64_t n, const char* in, char* out) {
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t i = 0; i < n; ++i) {
    std::memcpy(out + i * kSize, in + i * (step * kSize), sizeof(T));
  }
}

template <class T>
void copy_row(std::int64_t n, const char* in, std::int64_t in_stride, char* out,
              std::int64_t out_stride) {
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
  if (out_stride == kSize) {
    if (in_stride == kSize) {
      std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(T));
      return;
    }
    if (in_stride == 0) return copy_stepped<T, 0>(n, in, out);
    if (in_stride == -kSize) return copy_stepped<T, -1>(n, in, out);
    if (in_stride == 2 * kSize) return copy_stepped<T, 2>(n, in, out);
  }
  for (std::int64_t i = 0; i < n; ++i) {
    std::memcpy(out + i * out_stride, in + i * in_stride, sizeof(T));
  }
}

// A part of a plane.
struct Block {
  std::int64_t row, row_end, column, column_end;
};

template <class T> void copy_block(const Plane& p, const char* in, char* out, const Block& block) {
  bool tiled = std::abs(p.in_row) < std::abs(p.in_column) && p.in_row != 0;
  std::int64_t tile = tiled ? kTile : p.columns;
  for (std::int64_t column = block.column; column < block.column_end; column += tile) {
    std::int64_t count = std::min(tile, block.column_end - column);
    for (std::int64_t row = block.row; row < block.row_end; ++row) {
      copy_row<T>(count, in + row * p.in_row + column * p.in_column, p.in_column,
                  out + row * p.out_row + column * p.out_column, p.out_column);
    }
  }
}

using CopyBlock = void (*)(const Plane&, const char*, char*, const Block&);

struct Bytes16 {
  char bytes[16];
};

CopyBlock copy_block_of(std::int64_t size) {
  switch (size) {
    case 1: return copy_block<std::uint8_t>;
    case 2: return copy_block<std::uint16_t>;
    case 4: return copy_block<std::uint32_t>;
    case 8: return copy_block<std::uint64_t>;
    default: return copy_block<Bytes16>;
  }
}

// Moves the axis along which `in` is densest next to the last one, so that a transposition happens
// inside the plane.
void bring_dense_axis_in(ArrayView& in, ArrayView& out) {
  int n = in.ndim(), dense = n - 1;
  for (int i = 0; i < n - 1; ++i) {
    bool denser = std::abs(in.strides[i]) < std::abs(in.strides[dense]) && in.strides[i] != 0;
    if (denser) dense = i;
  }
  if (dense >= n - 2) return;
  for (ArrayView* view : {&in, &out}) {
    std::swap(view->shape[dense], view->shape[n - 2]);
    std::swap(view->strides[dense], view->strides[n - 2]);
  }
}

}  // namespace

void copy_elements(const ArrayView& source, const ArrayView& destination) {
  ArrayView in = source, out = destination;
  if (out.size() == 0) return;
  ArrayView* views[] = {&out, &in};
  normalize_axes(views, 2);
  std::int64_t size = itemsize(out.dtype);
  int n = out.ndim();
  if (n == 0 || (n == 1 && in.strides[0] == size && out.strides[0] == size)) {
    return copy_bytes(in.data, out.data, out.size() * size);
  }
  bring_dense_axis_in(in, out);
  int row = n - 2, column = n - 1;
  Plane plane = {n > 1 ? out.shape[row] : 1,   out.shape[column],
                 n > 1 ? in.strides[row] : 0,  in.strides[column],
                 n > 1 ? out.strides[row] : 0, out.strides[column]};
  if (plane.columns < kNarrow && plane.rows > plane.columns) {  // a row is not worth a loop
    plane = {plane.columns, plane.rows,       plane.in_column,
             plane.in_row,  plane.out_column, plane.out_row};
  }
  // The work is cut into bands of rows and, where those are long, into segments of their columns,
  // numbered over all planes.
  std::int64_t bands = (plane.rows + kTile - 1) / kTile, height = std::min(plane.rows, kTile);
  std::int64_t width = std::min(plane.columns, std::max(kTile, kCopyGrain / (height * size)));
  std::int64_t segments = (plane.columns + width - 1) / width, blocks = bands * segments;
  std::int64_t planes = out.size() / (plane.rows * plane.columns);
  CopyBlock copy = copy_block_of(size);
  std::int64_t grain = std::max<std::int64_t>(1, kCopyGrain / 4 / (height * width * size));
  parallel_for(blocks * planes, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t number = begin; number < end; ++number) {
      const char* from = in.data;
      char* to = out.data;
      std::int64_t rest = number / blocks;
      for (int i = n - 3; i >= 0; --i) {
        from += rest % out.shape[i] * in.strides[i];
        to += rest % out.shape[i] * out.strides[i];
        rest /= out.shape[i];
      }
      std::int64_t row = number % blocks / segments * kTile, at = number % segments * width;
      copy(plane, from, to,
           {row, std::min(plane.rows, row + kTile), at, std::min(plane.columns, at + width)});
    }
  });
}

}  // namespace rensa::host

namespace rensa {

void Transfer::run_cpu() { host::copy_elements(in.view, out.view); }

}  // namespace rensa

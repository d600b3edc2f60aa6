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

template <class T>
void copy_row(std::int64_t n, const char* in, std::int64_t in_stride, char* out,
              std::int64_t out_stride) {
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
  if (in_stride == kSize && out_stride == kSize) {
    std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(T));
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    std::memcpy(out + i * out_stride, in + i * in_stride, sizeof(T));
  }
}

template <class T>
void copy_rows(const Plane& p, const char* in, char* out, std::int64_t begin, std::int64_t end) {
  bool tiled = std::abs(p.in_row) < std::abs(p.in_column);
  std::int64_t tile = tiled ? kTile : p.columns;
  for (std::int64_t column = 0; column < p.columns; column += tile) {
    std::int64_t count = std::min(tile, p.columns - column);
    for (std::int64_t row = begin; row < end; ++row) {
      copy_row<T>(count, in + row * p.in_row + column * p.in_column, p.in_column,
                  out + row * p.out_row + column * p.out_column, p.out_column);
    }
  }
}

using CopyRows = void (*)(const Plane&, const char*, char*, std::int64_t, std::int64_t);

struct Bytes16 {
  char bytes[16];
};

CopyRows copy_rows_of(std::int64_t size) {
  switch (size) {
    case 1: return copy_rows<std::uint8_t>;
    case 2: return copy_rows<std::uint16_t>;
    case 4: return copy_rows<std::uint32_t>;
    case 8: return copy_rows<std::uint64_t>;
    default: return copy_rows<Bytes16>;
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
  // The work is cut into bands of rows, numbered over all planes.
  std::int64_t bands = (plane.rows + kTile - 1) / kTile;
  std::int64_t planes = out.size() / (plane.rows * plane.columns);
  CopyRows copy = copy_rows_of(size);
  std::int64_t band_bytes = std::min(plane.rows, kTile) * plane.columns * size;
  std::int64_t grain = std::max<std::int64_t>(1, kCopyGrain / 4 / band_bytes);
  parallel_for(bands * planes, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t band = begin; band < end; ++band) {
      const char* from = in.data;
      char* to = out.data;
      std::int64_t rest = band / bands;
      for (int i = n - 3; i >= 0; --i) {
        from += rest % out.shape[i] * in.strides[i];
        to += rest % out.shape[i] * out.strides[i];
        rest /= out.shape[i];
      }
      std::int64_t first = band % bands * kTile;
      copy(plane, from, to, first, std::min(plane.rows, first + kTile));
    }
  });
}

}  // namespace rensa::host

namespace rensa {

void Transfer::run_cpu() { host::copy_elements(in.view, out.view); }

}  // namespace rensa

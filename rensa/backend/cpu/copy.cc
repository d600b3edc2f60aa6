// Strided copies without conversion: memcpy where both sides are contiguous, tiles where they run
// along different axes (a transposition), rows otherwise.
#include "rensa/backend/cpu/copy.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "rensa/backend/cpu/kernels.h"
#include "rensa/backend/cpu/strided.h"
#include "rensa/core/thread_pool.h"

namespace rensa::host {

namespace {

constexpr std::int64_t kCopyGrain = 256 << 10;  // bytes that are worth a thread's while
constexpr std::int64_t kTile = 32;
constexpr std::int64_t kBand = 64;  // rows of a thread's piece
constexpr std::int64_t kFewColumns = 8;

void copy_bytes(const char* in, char* out, std::int64_t nbytes) {
  if (in == out) return;
  parallel_for(nbytes, long_pieces(nbytes, kCopyGrain), [=](std::int64_t begin, std::int64_t end) {
    copy_run(out + begin, in + begin, end - begin);
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
      return copy_run(out, in, n * kSize);
    }
    if (in_stride == 0) return kernels().fill(n, in, kSize, out);
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

// A transposition of elements that lie side by side in columns of `in` and in rows of `out`, by
// squares whose sides are a cache line. A square is read into a buffer of its own first: its lines
// in `in` are often a power of two apart, and then share a few places of the first-level cache.
template <class T>
void transpose_block(const Plane& p, const char* in, char* out, const Block& block) {
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
  constexpr std::int64_t kSide = 64 / kSize;
  T square[kSide][kSide];
  for (std::int64_t row = block.row; row < block.row_end; row += kSide) {
    std::int64_t rows = std::min(kSide, block.row_end - row);
    for (std::int64_t column = block.column; column < block.column_end; column += kSide) {
      std::int64_t columns = std::min(kSide, block.column_end - column);
      const char* from = in + row * kSize + column * p.in_column;
      char* to = out + row * p.out_row + column * kSize;
      for (std::int64_t j = 0; j < columns; ++j) {
        std::memcpy(square[j], from + j * p.in_column, static_cast<std::size_t>(rows * kSize));
      }
      if (rows == kSide && columns == kSide) {
        for (std::int64_t i = 0; i < kSide; ++i) {
          T line[kSide];
          for (std::int64_t j = 0; j < kSide; ++j) line[j] = square[j][i];
          std::memcpy(to + i * p.out_row, line, sizeof(line));
        }
      } else {
        for (std::int64_t i = 0; i < rows; ++i) {
          for (std::int64_t j = 0; j < columns; ++j) {
            std::memcpy(to + i * p.out_row + j * kSize, &square[j][i], sizeof(T));
          }
        }
      }
    }
  }
}

template <class T> void copy_block(const Plane& p, const char* in, char* out, const Block& block) {
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
  if (p.in_row == kSize && p.out_column == kSize && p.in_column != kSize && p.in_column != 0) {
    return transpose_block<T>(p, in, out, block);
  }
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

// Whether "rep movsb" is slow where source and destination lie differently against a cache line: on
// AMD's processors before family 1Ah (Zen 5).
bool copies_slowly_by_rep() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (!__builtin_cpu_is("amd") || !__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return false;
  return (eax >> 8 & 0xf) + (eax >> 20 & 0xff) < 0x1a;
#else
  return false;
#endif
}

}  // namespace

void copy_long_run(char* out, const char* in, std::int64_t nbytes) {
  static const bool by_vectors = copies_slowly_by_rep();
  if (by_vectors) {
    copy_by_vectors(out, in, nbytes);
  } else {
    std::memcpy(out, in, static_cast<std::size_t>(nbytes));
  }
}

void copy_by_vectors(char* out, const char* in, std::int64_t nbytes) {
  using Vector = char __attribute__((vector_size(16)));
  constexpr std::int64_t kLine = 64;
  std::int64_t i = 0;
  for (; i + kLine <= nbytes; i += kLine) {
    Vector a, b, c, d;  // of any address
    std::memcpy(&a, in + i, sizeof a);
    std::memcpy(&b, in + i + 16, sizeof b);
    std::memcpy(&c, in + i + 32, sizeof c);
    std::memcpy(&d, in + i + 48, sizeof d);
#if defined(__x86_64__)
    asm("" : "+x"(a), "+x"(b), "+x"(c), "+x"(d));  // else the compiler calls memcpy for the loop
#endif
    std::memcpy(out + i, &a, sizeof a);
    std::memcpy(out + i + 16, &b, sizeof b);
    std::memcpy(out + i + 32, &c, sizeof c);
    std::memcpy(out + i + 48, &d, sizeof d);
  }
  std::memcpy(out + i, in + i, static_cast<std::size_t>(nbytes - i));
}

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
  if (plane.columns < kFewColumns && plane.rows > plane.columns) {  // a row is not worth a loop
    plane = {plane.columns, plane.rows,       plane.in_column,
             plane.in_row,  plane.out_column, plane.out_row};
  }
  // The work is cut into bands of rows and, where those are long, into segments of their columns,
  // numbered over all planes.
  std::int64_t bands = (plane.rows + kBand - 1) / kBand, height = std::min(plane.rows, kBand);
  std::int64_t width = std::min(plane.columns, std::max(kBand, kCopyGrain / (height * size)));
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
      std::int64_t row = number % blocks / segments * kBand, at = number % segments * width;
      copy(plane, from, to,
           {row, std::min(plane.rows, row + kBand), at, std::min(plane.columns, at + width)});
    }
  });
}

}  // namespace rensa::host

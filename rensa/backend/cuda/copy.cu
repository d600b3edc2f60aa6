// Copies that keep the dtype, and fills: they move bits, in units of up to 16 bytes. A
// transposition goes through tiles in shared memory, so that reads and writes are both in whole
// lines.
#include "rensa/backend/cuda/copy.h"

#include <cstring>

#include "rensa/backend/cuda/copy_rows.h"
#include "rensa/backend/cuda/kernel.cuh"

namespace rensa::cuda {

namespace {

// --- units ---

template <int kBytes> struct UnitOf;
template <> struct UnitOf<1> { using type = unsigned char; };
template <> struct UnitOf<2> { using type = unsigned short; };
template <> struct UnitOf<4> { using type = unsigned; };
template <> struct UnitOf<8> { using type = unsigned long long; };
template <> struct UnitOf<16> { using type = uint4; };

constexpr int kUnroll = 4;

struct CopyArgs {
  Indexer<2> indexer;  // 0 is the output; over units
  const char* in;      // null: the pattern
  char* out;
  unsigned count;  // units
  int unroll;
  bool straight;  // one contiguous run, full unroll
  int tail;       // bytes behind the last unit of such a run
  int spread;     // 0, or the bytes of the one element that fills a unit
  alignas(16) unsigned char pattern[16];
};

// A unit full of the element of `size` bytes at p.
template <class Unit> __device__ __forceinline__ Unit spread_element(const char* p, int size) {
  unsigned long long words[2];
  switch (size) {
    case 1: words[0] = *reinterpret_cast<const unsigned char*>(p) * 0x0101010101010101ull; break;
    case 2: words[0] = *reinterpret_cast<const unsigned short*>(p) * 0x0001000100010001ull; break;
    case 4: words[0] = *reinterpret_cast<const unsigned*>(p) * 0x0000000100000001ull; break;
    default: words[0] = *reinterpret_cast<const unsigned long long*>(p); break;
  }
  words[1] = words[0];
  Unit unit;
  memcpy(&unit, words, sizeof(Unit));
  return unit;
}

template <class Unit>
__global__ void __launch_bounds__(kBlock) copy_units(const __grid_constant__ CopyArgs args) {
  wait_for_previous();
  unsigned begin = blockIdx.x * (kBlock * args.unroll) + threadIdx.x;
  Unit value[kUnroll];
  std::int64_t target[kUnroll];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) value[u] = *reinterpret_cast<const Unit*>(args.pattern);
  if (args.straight && (blockIdx.x + 1ull) * (kBlock * kUnroll) <= args.count) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      std::int64_t index = begin + u * kBlock;
      target[u] = index * sizeof(Unit);
      if (args.in) value[u] = reinterpret_cast<const Unit*>(args.in)[index];
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) *reinterpret_cast<Unit*>(args.out + target[u]) = value[u];
  } else {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      unsigned index = begin + u * kBlock;
      if (u >= args.unroll || index >= args.count) continue;
      std::int64_t offset[2];
      args.indexer.offsets(index, offset);
      target[u] = offset[0];
      if (args.spread) {
        value[u] = spread_element<Unit>(args.in + offset[1], args.spread);
      } else if (args.in) {
        value[u] = *reinterpret_cast<const Unit*>(args.in + offset[1]);
      }
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      unsigned index = begin + u * kBlock;
      if (u >= args.unroll || index >= args.count) continue;
      *reinterpret_cast<Unit*>(args.out + target[u]) = value[u];
    }
  }
  if (blockIdx.x == 0 && threadIdx.x < args.tail) {
    std::int64_t at = args.count * static_cast<std::int64_t>(sizeof(Unit)) + threadIdx.x;
    args.out[at] = args.in ? args.in[at] : static_cast<char>(args.pattern[at % 16]);
  }
}

// --- tiles ---

// `in` is contiguous along p, `out` along q; both are cut into tiles of kTile * kTile elements.
struct TileArgs {
  const char* in;
  char* out;
  unsigned extent_p, extent_q;
  std::int64_t in_stride_q, out_stride_p;  // bytes
  FastDiv tiles_p, tiles_q;
  Indexer<2> batch;  // the other axes; 0 is the output
};

constexpr int tile_extent(int bytes) { return bytes <= 4 ? 64 : 32; }

template <class Unit>
__global__ void __launch_bounds__(kBlock) copy_tiles(const __grid_constant__ TileArgs args) {
  wait_for_previous();
  constexpr int kTile = tile_extent(sizeof(Unit));
  constexpr int kRows = kBlock / kTile;  // rows of a tile that the block moves at a time
  __shared__ Unit tile[kTile][kTile + 1];
  unsigned rest = args.tiles_q.divide(blockIdx.x);
  unsigned q0 = (blockIdx.x - rest * args.tiles_q.divisor) * kTile;
  unsigned batch = args.tiles_p.divide(rest);
  unsigned p0 = (rest - batch * args.tiles_p.divisor) * kTile;
  std::int64_t offset[2];
  args.batch.offsets(batch, offset);
  unsigned x = threadIdx.x % kTile, y = threadIdx.x / kTile;

  const char* in = args.in + offset[1] + (p0 + x) * static_cast<std::int64_t>(sizeof(Unit));
  if (p0 + kTile <= args.extent_p && q0 + kTile <= args.extent_q) {
    Unit value[kTile / kRows];
#pragma unroll
    for (int i = 0; i < kTile / kRows; ++i) {
      value[i] = *reinterpret_cast<const Unit*>(in + (q0 + y + i * kRows) * args.in_stride_q);
    }
#pragma unroll
    for (int i = 0; i < kTile / kRows; ++i) tile[y + i * kRows][x] = value[i];
  } else if (p0 + x < args.extent_p) {
    for (unsigned row = y; row < kTile && q0 + row < args.extent_q; row += kRows) {
      tile[row][x] = *reinterpret_cast<const Unit*>(in + (q0 + row) * args.in_stride_q);
    }
  }
  __syncthreads();
  if (q0 + x >= args.extent_q) return;
  char* out = args.out + offset[0] + (q0 + x) * static_cast<std::int64_t>(sizeof(Unit));
#pragma unroll 8
  for (unsigned row = y; row < kTile; row += kRows) {
    if (p0 + row < args.extent_p) {
      *reinterpret_cast<Unit*>(out + (p0 + row) * args.out_stride_p) = tile[x][row];
    }
  }
}

// Elements of 1 and 2 bytes move as words of N of them: a thread turns N * N elements in registers.
constexpr int packed_words(int n) { return n == 4 ? 32 : 64; }  // of a tile's row

__device__ __forceinline__ void turn(unsigned (&w)[2]) {
  unsigned a = w[0], b = w[1];
  w[0] = __byte_perm(a, b, 0x5410);
  w[1] = __byte_perm(a, b, 0x7632);
}
__device__ __forceinline__ void turn(unsigned (&w)[4]) {
  unsigned ab = __byte_perm(w[0], w[1], 0x5140), ab_high = __byte_perm(w[0], w[1], 0x7362);
  unsigned cd = __byte_perm(w[2], w[3], 0x5140), cd_high = __byte_perm(w[2], w[3], 0x7362);
  w[0] = __byte_perm(ab, cd, 0x5410);
  w[1] = __byte_perm(ab, cd, 0x7632);
  w[2] = __byte_perm(ab_high, cd_high, 0x5410);
  w[3] = __byte_perm(ab_high, cd_high, 0x7632);
}

// Extents are multiples of N, addresses and strides of 4 bytes.
template <int N>
__global__ void __launch_bounds__(kBlock) copy_packed_tiles(const __grid_constant__ TileArgs args) {
  wait_for_previous();
  constexpr int kWords = packed_words(N), kTile = kWords * N, kBatch = 16 / N, kSize = 4 / N;
  // Row p of the output's tile; its words are rotated by p / N, so that the threads of a warp,
  // whose p lie N apart, write to different banks.
  __shared__ unsigned tile[kTile * kWords];
  unsigned rest = args.tiles_q.divide(blockIdx.x);
  unsigned q0 = (blockIdx.x - rest * args.tiles_q.divisor) * kTile;
  unsigned batch = args.tiles_p.divide(rest);
  unsigned p0 = (rest - batch * args.tiles_p.divisor) * kTile;
  std::int64_t offset[2];
  args.batch.offsets(batch, offset);

  const char* in = args.in + offset[1];
  for (unsigned first = threadIdx.x; first < kWords * kWords; first += kBatch * kBlock) {
    unsigned words[kBatch][N] = {};
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      unsigned index = first + i * kBlock;
      unsigned p = p0 + index % kWords * N, q = q0 + index / kWords * N;
      if (p >= args.extent_p || q >= args.extent_q) continue;
#pragma unroll
      for (int r = 0; r < N; ++r) {
        words[i][r] = *reinterpret_cast<const unsigned*>(in + p * std::int64_t{kSize} +
                                                         (q + r) * args.in_stride_q);
      }
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      unsigned index = first + i * kBlock, x = index % kWords, y = index / kWords;
      turn(words[i]);
#pragma unroll
      for (int r = 0; r < N; ++r) tile[(x * N + r) * kWords + (x + y) % kWords] = words[i][r];
    }
  }
  __syncthreads();
  char* out = args.out + offset[0];
#pragma unroll 8
  for (unsigned index = threadIdx.x; index < kTile * kWords; index += kBlock) {
    unsigned row = index / kWords, x = index % kWords, p = p0 + row, q = q0 + x * N;
    if (p >= args.extent_p || q >= args.extent_q) continue;
    *reinterpret_cast<unsigned*>(out + p * args.out_stride_p + q * std::int64_t{kSize}) =
        tile[row * kWords + (x + row / N) % kWords];
  }
}

// --- short axes ---

// `in` is contiguous along one axis, `out` along another, and one of the two is shorter than a
// tile is worth, `extent` elements (the colours of images). A thread moves all of them; its
// neighbours are neighbours on the other axis, the indexer's last one.
struct ShortAxisArgs {
  const char* in;
  char* out;
  unsigned count;  // without the short axis
  int extent, unroll;
  std::int64_t in_step, out_step;  // bytes along the short axis
  Indexer<2> indexer;              // 0 is the output
};
constexpr int kShortest = 2, kShort = 8;  // extents from, up to below

template <class Unit, int N> struct alignas(N * sizeof(Unit)) Few { Unit element[N]; };

// N elements, which are one aligned vector where they lie together: in `in` (kSplits) or in `out`.
template <class Unit, int N, bool kSplits>
__global__ void __launch_bounds__(kBlock) copy_few(const __grid_constant__ ShortAxisArgs args) {
  wait_for_previous();
  unsigned begin = blockIdx.x * (kBlock * args.unroll) + threadIdx.x;
  Few<Unit, N> few[kUnroll];
  char* target[kUnroll];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    unsigned index = begin + u * kBlock;
    if (u >= args.unroll || index >= args.count) continue;
    std::int64_t offset[2];
    args.indexer.offsets(index, offset);
    target[u] = args.out + offset[0];
    const char* from = args.in + offset[1];
    if constexpr (kSplits) {
      few[u] = *reinterpret_cast<const Few<Unit, N>*>(from);
    } else {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        few[u].element[i] = *reinterpret_cast<const Unit*>(from + i * args.in_step);
      }
    }
  }
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    unsigned index = begin + u * kBlock;
    if (u >= args.unroll || index >= args.count) continue;
    if constexpr (kSplits) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        *reinterpret_cast<Unit*>(target[u] + i * args.out_step) = few[u].element[i];
      }
    } else {
      *reinterpret_cast<Few<Unit, N>*>(target[u]) = few[u];
    }
  }
}

template <class Unit>
__global__ void __launch_bounds__(kBlock)
    copy_short_axis(const __grid_constant__ ShortAxisArgs args) {
  wait_for_previous();
  unsigned index = blockIdx.x * kBlock + threadIdx.x;
  if (index >= args.count) return;
  std::int64_t offset[2];
  args.indexer.offsets(index, offset);
  Unit element[kShort];
#pragma unroll
  for (int i = 0; i < kShort; ++i) {
    if (i >= args.extent) continue;
    element[i] = *reinterpret_cast<const Unit*>(args.in + offset[1] + i * args.in_step);
  }
#pragma unroll
  for (int i = 0; i < kShort; ++i) {
    if (i < args.extent) {
      *reinterpret_cast<Unit*>(args.out + offset[0] + i * args.out_step) = element[i];
    }
  }
}

using ShortAxisKernel = void (*)(ShortAxisArgs);

// The kernel for vectors of `extent` elements; null if there is none.
template <class Unit> ShortAxisKernel few_kernel(int extent, bool splits) {
  if constexpr (2 * sizeof(Unit) <= 16) {
    if (extent == 2) return splits ? copy_few<Unit, 2, true> : copy_few<Unit, 2, false>;
  }
  if constexpr (4 * sizeof(Unit) <= 16) {
    if (extent == 4) return splits ? copy_few<Unit, 4, true> : copy_few<Unit, 4, false>;
  }
  return nullptr;
}

// --- the choice ---

template <class F> void visit_unit(int bytes, F&& f) {
  switch (bytes) {
    case 1: return f(UnitOf<1>::type{});
    case 2: return f(UnitOf<2>::type{});
    case 4: return f(UnitOf<4>::type{});
    case 8: return f(UnitOf<8>::type{});
    default: return f(UnitOf<16>::type{});
  }
}

// The largest unit that pointers, strides of outer axes and (but for a single run) the length of
// the inner run allow. `in` has no data for a fill; of a spread one the output alone counts.
int unit_of(const ArrayView& in, const ArrayView& out) {
  int last = out.ndim() - 1;
  std::int64_t run = out.shape[last] * itemsize(out.dtype);
  auto bits =
      reinterpret_cast<std::uintptr_t>(in.data) | reinterpret_cast<std::uintptr_t>(out.data);
  if (last > 0) bits |= static_cast<std::uintptr_t>(run);
  for (int axis = 0; axis < last; ++axis) {
    bits |= static_cast<std::uintptr_t>(out.strides[axis]);
    if (in.data) bits |= static_cast<std::uintptr_t>(in.strides[axis]);
  }
  int unit = 16;
  while (bits % static_cast<unsigned>(unit) != 0) unit /= 2;
  return unit;
}

void launch_units(const char* operation, const LaunchContext& context, const ArrayView& in,
                  const ArrayView& out, const unsigned char* pattern) {
  std::int64_t size = itemsize(out.dtype);
  int last = out.ndim() - 1;
  // One element along the last axis, spread over it.
  bool spread = in.data && in.strides[last] == 0 && out.strides[last] == size && last > 0;
  bool contiguous = out.strides[last] == size && (!in.data || in.strides[last] == size || spread);
  int unit = static_cast<int>(size);
  if (contiguous) unit = unit_of(spread ? ArrayView{} : in, out);
  bool rows = in.data && contiguous && !spread;
  if (rows && copy_rows(operation, context, in, out, unit)) return;
  spread = spread && unit > size;
  std::int64_t run = contiguous ? out.shape[last] * size / unit : out.shape[last];

  CopyArgs args = {};
  args.in = in.data;
  args.out = out.data;
  if (pattern) std::memcpy(args.pattern, pattern, sizeof(args.pattern));
  std::int64_t count = run;
  for (int axis = 0; axis <= last; ++axis) {
    bool inner = contiguous && axis == last;
    std::int64_t in_stride = in.data ? in.strides[axis] : 0;
    args.indexer.push_back(
        axis == last ? std::max<std::int64_t>(run, 1) : out.shape[axis],
        {inner ? unit : out.strides[axis], inner && in_stride != 0 ? unit : in_stride});
    if (axis < last) count *= out.shape[axis];
  }
  args.count = static_cast<unsigned>(count);
  args.spread = spread ? static_cast<int>(size) : 0;
  if (contiguous && last == 0) args.tail = static_cast<int>(out.shape[0] * size - run * unit);
  args.unroll = count >= kUnroll * kBlock * kMultiprocessors ? kUnroll : 1;
  args.straight = contiguous && last == 0 && args.unroll == kUnroll;
  std::int64_t grid = std::max<std::int64_t>(ceil_div(count, kBlock * args.unroll), 1);
  visit_unit(unit, [&](auto type) {
    launch_kernel(operation, context, copy_units<decltype(type)>, grid, kBlock, args);
  });
}

// Whether copy_packed_tiles takes a transposition of axes p and q.
bool takes_words(const ArrayView& in, const ArrayView& out, int p, int q) {
  std::int64_t size = itemsize(out.dtype);
  if (size > 2) return false;
  auto bits =
      reinterpret_cast<std::uintptr_t>(in.data) | reinterpret_cast<std::uintptr_t>(out.data);
  bits |= static_cast<std::uintptr_t>(out.shape[p] * size);
  bits |= static_cast<std::uintptr_t>(out.shape[q] * size);
  for (int axis = 0; axis < out.ndim(); ++axis) {
    if (axis != p) bits |= static_cast<std::uintptr_t>(in.strides[axis]);
    if (axis != q) bits |= static_cast<std::uintptr_t>(out.strides[axis]);
  }
  return bits % 4 == 0;
}

// The axis that `in` is contiguous along, where `out` is so along its last one instead; else -1.
int turned_axis(const ArrayView& in, const ArrayView& out) {
  std::int64_t size = itemsize(out.dtype);
  int q = out.ndim() - 1, p = -1;
  for (int axis = 0; axis < q; ++axis) p = in.strides[axis] == size ? axis : p;
  bool turned = out.strides[q] == size && in.strides[q] != size && in.strides[q] != 0;
  return turned ? p : -1;
}

// Copies by tiles if `in` is contiguous along another axis than `out`.
bool launch_tiles(const char* operation, const LaunchContext& context, const ArrayView& in,
                  const ArrayView& out) {
  std::int64_t size = itemsize(out.dtype);
  int p = turned_axis(in, out), q = out.ndim() - 1;
  if (p < 0) return false;
  if (out.shape[p] < kShort || out.shape[q] < kShort) return false;

  bool words = takes_words(in, out, p, q);
  int per_word = static_cast<int>(4 / size);
  int tile = words ? packed_words(per_word) * per_word : tile_extent(static_cast<int>(size));
  TileArgs args = {};
  args.in = in.data;
  args.out = out.data;
  args.extent_p = static_cast<unsigned>(out.shape[p]);
  args.extent_q = static_cast<unsigned>(out.shape[q]);
  args.in_stride_q = in.strides[q];
  args.out_stride_p = out.strides[p];
  args.tiles_p = FastDiv(ceil_div(out.shape[p], tile));
  args.tiles_q = FastDiv(ceil_div(out.shape[q], tile));
  std::int64_t grid = std::int64_t{args.tiles_p.divisor} * args.tiles_q.divisor;
  for (int axis = 0; axis < q; ++axis) {
    if (axis == p) continue;
    args.batch.push_back(out.shape[axis], {out.strides[axis], in.strides[axis]});
    grid *= out.shape[axis];
  }
  if (args.batch.ndim == 0) args.batch.push_back(1, {0, 0});
  if (words) {
    launch_kernel(operation, context, per_word == 2 ? copy_packed_tiles<2> : copy_packed_tiles<4>,
                  grid, kBlock, args);
    return true;
  }
  visit_unit(static_cast<int>(size), [&](auto type) {
    launch_kernel(operation, context, copy_tiles<decltype(type)>, grid, kBlock, args);
  });
  return true;
}

// Whether elements along `axis`, which lie together, are an aligned vector at every place.
bool few_are_aligned(const ArrayView& view, int axis) {
  auto bits = reinterpret_cast<std::uintptr_t>(view.data);
  for (int i = 0; i < view.ndim(); ++i) {
    if (i != axis) bits |= static_cast<std::uintptr_t>(view.strides[i]);
  }
  return bits % static_cast<std::uintptr_t>(view.shape[axis] * itemsize(view.dtype)) == 0;
}

// Copies by short axes if `in` is contiguous along another axis than `out`, and one of them short.
bool launch_short_axis(const char* operation, const LaunchContext& context, const ArrayView& in,
                       const ArrayView& out) {
  std::int64_t size = itemsize(out.dtype);
  int p = turned_axis(in, out), q = out.ndim() - 1;
  if (p < 0) return false;
  bool splits = out.shape[p] < out.shape[q];
  int few = splits ? p : q, many = splits ? q : p;
  std::int64_t extent = out.shape[few];
  if (extent < kShortest || extent >= kShort || out.shape[many] < 4 * kShort) return false;

  ShortAxisArgs args = {};
  args.in = in.data;
  args.out = out.data;
  args.extent = static_cast<int>(extent);
  args.in_step = in.strides[few];
  args.out_step = out.strides[few];
  args.count = static_cast<unsigned>(out.size() / extent);
  for (int axis = 0; axis <= q; ++axis) {
    if (axis == few || axis == many) continue;
    args.indexer.push_back(out.shape[axis], {out.strides[axis], in.strides[axis]});
  }
  args.indexer.push_back(out.shape[many], {out.strides[many], in.strides[many]});
  visit_unit(static_cast<int>(size), [&](auto type) {
    using Unit = decltype(type);
    ShortAxisKernel kernel = few_kernel<Unit>(args.extent, splits);
    if (kernel && !few_are_aligned(splits ? in : out, few)) kernel = nullptr;
    args.unroll = kernel && args.count >= kUnroll * kBlock * kMultiprocessors ? kUnroll : 1;
    launch_kernel(operation, context, kernel ? kernel : copy_short_axis<Unit>,
                  ceil_div(args.count, kBlock * args.unroll), kBlock, args);
  });
  return true;
}

// Copies by the driver if both are one long run, which it does a little faster.
bool copy_run(const char* operation, const LaunchContext& context, const ArrayView& in,
              const ArrayView& out) {
  constexpr std::int64_t kLong = 1 << 20;
  std::int64_t size = itemsize(out.dtype), bytes = out.size() * size;
  bool run = out.ndim() == 1 && out.strides[0] == size && in.strides[0] == size;
  bool apart = in.data + bytes <= out.data || out.data + bytes <= in.data;
  if (!run || !apart || bytes < kLong) return false;
  RENSA_CUDA_CHECK(operation, cudaMemcpyAsync(out.data, in.data, static_cast<std::size_t>(bytes),
                                              cudaMemcpyDeviceToDevice,
                                              static_cast<cudaStream_t>(context.handle)));
  return true;
}

void copy_or_fill(const char* operation, const LaunchContext& context, ArrayView in, ArrayView out,
                  const unsigned char* pattern) {
  if (out.size() == 0) return;
  ArrayView* views[2] = {&out, &in};
  normalize_axes(views, in.data ? 2 : 1);
  keep_an_axis(views, in.data ? 2 : 1);
  if (out.size() > kMaxCount) {  // two halves along the longest axis
    int axis = 0;
    for (int i = 1; i < out.ndim(); ++i) axis = out.shape[i] > out.shape[axis] ? i : axis;
    std::int64_t half = out.shape[axis] / 2;
    half -= half >= 64 ? half % 64 : 0;  // units stay aligned
    ArrayView in_part = in, out_part = out;
    in_part.shape[axis] = out_part.shape[axis] = half;
    copy_or_fill(operation, context, in_part, out_part, pattern);
    out.shape[axis] -= half;
    out.data += half * out.strides[axis];
    if (in.data) {
      in.shape[axis] -= half;
      in.data += half * in.strides[axis];
    }
    return copy_or_fill(operation, context, in, out, pattern);
  }
  if (in.data && copy_run(operation, context, in, out)) return;
  if (in.data && launch_tiles(operation, context, in, out)) return;
  if (in.data && launch_short_axis(operation, context, in, out)) return;
  launch_units(operation, context, in, out, pattern);
}

struct BytesArgs {
  const char* in;
  char* out;
  std::int64_t count;
  unsigned* flag;
  unsigned turn;
};

// By one block, whose writes are all there before the flag is.
template <class Unit>
__global__ void __launch_bounds__(kBlock) copy_bytes(const __grid_constant__ BytesArgs args) {
  wait_for_previous();
  auto units = args.count / static_cast<std::int64_t>(sizeof(Unit));
  for (std::int64_t i = threadIdx.x; i < units; i += blockDim.x) {
    reinterpret_cast<Unit*>(args.out)[i] = reinterpret_cast<const Unit*>(args.in)[i];
  }
  __syncthreads();
  if (threadIdx.x == 0) store_release(args.flag, args.turn);
}

}  // namespace

void copy_elements(const char* operation, const LaunchContext& context, const ArrayView& in,
                   const ArrayView& out) {
  copy_or_fill(operation, context, in, out, nullptr);
}

void make_pattern(const Scalar& value, Dtype compute, Dtype dtype, unsigned char (&pattern)[16]) {
  alignas(16) unsigned char number[16];
  make_number(value, compute, number);
  auto write = [&](auto v) {
    switch (dtype) {
#define RENSA_CASE(d, T)                                                                           \
  case Dtype::d: {                                                                                 \
    T element = convert<T>(v);                                                                     \
    for (std::size_t i = 0; i < 16; i += sizeof(T)) std::memcpy(pattern + i, &element, sizeof(T)); \
    break;                                                                                         \
  }
      RENSA_STORAGE_TYPES(RENSA_CASE)
#undef RENSA_CASE
    }
  };
  auto as = [&](auto v) {
    std::memcpy(&v, number, sizeof(v));
    write(v);
  };
  switch (compute_type(compute)) {
    case ComputeType::i64: return as(0ll);
    case ComputeType::u64: return as(0ull);
    case ComputeType::f32: return as(0.0f);
    case ComputeType::f64: return as(0.0);
    case ComputeType::c64: return as(complex_t<float>(0));
    case ComputeType::c128: return as(complex_t<double>(0));
  }
}

void fill_elements(const char* operation, const LaunchContext& context, const Scalar& value,
                   Dtype compute, const ArrayView& out) {
  unsigned char pattern[16];
  make_pattern(value, compute, out.dtype, pattern);
  copy_or_fill(operation, context, ArrayView{}, out, pattern);
}

void copy_few_bytes(const char* operation, const LaunchContext& context, const void* from, void* to,
                    std::int64_t nbytes, unsigned* flag, unsigned turn) {
  BytesArgs args{static_cast<const char*>(from), static_cast<char*>(to), nbytes, flag, turn};
  bool vectors = is_aligned(from, 16) && is_aligned(to, 16) && nbytes % 16 == 0;
  std::int64_t units = vectors ? nbytes / 16 : nbytes;
  int threads = static_cast<int>(std::min<std::int64_t>(round_up(units, 32), kBlock));
  launch_kernel(operation, context, vectors ? copy_bytes<uint4> : copy_bytes<char>, 1, threads,
                args);
}

}  // namespace rensa::cuda

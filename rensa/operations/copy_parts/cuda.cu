// Copies of several arrays on a GPU: small ones together, in one kernel whose blocks look up which
// of them they belong to.
#include <algorithm>

#include "rensa/backend/cuda/copy.h"
#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/operations/copy_parts/copy_parts.h"

namespace rensa::cuda {

namespace {

constexpr int kMaxParts = 56;  // as many as fit the 4 KiB of a kernel's arguments
// Of larger parts a launch each costs nothing; those that move in small units go faster on their
// own.
constexpr std::int64_t kMaxBytes = 64 << 20, kMaxBytesOfSmallUnits = 1 << 20;
constexpr int kUnitsEach = 4;  // that a thread moves, read together
constexpr unsigned kUnitsPerBlock = kUnitsEach * kBlock;

// Rows of units, contiguous each.
struct Piece {
  const char* in;
  char* out;
  std::int64_t in_stride, out_stride;  // from row to row
  FastDiv row_units;
  unsigned units;        // in all
  unsigned first_block;  // of the grid
  unsigned unit_bytes;
};

struct PiecesArgs {
  Piece pieces[kMaxParts];
  int count;
};
static_assert(sizeof(PiecesArgs) <= 4096);

template <class Unit>
__device__ __forceinline__ void copy_units(const Piece& piece, unsigned begin) {
  auto offset = [&](unsigned i, std::int64_t stride) {
    unsigned row = piece.row_units.divide(i);
    unsigned column = i - row * piece.row_units.divisor;
    return row * stride + column * static_cast<std::int64_t>(sizeof(Unit));
  };
  Unit values[kUnitsEach];
#pragma unroll
  for (int u = 0; u < kUnitsEach; ++u) {
    unsigned i = begin + u * kBlock;
    if (i >= piece.units) continue;
    values[u] = *reinterpret_cast<const Unit*>(piece.in + offset(i, piece.in_stride));
  }
#pragma unroll
  for (int u = 0; u < kUnitsEach; ++u) {
    unsigned i = begin + u * kBlock;
    if (i >= piece.units) continue;
    *reinterpret_cast<Unit*>(piece.out + offset(i, piece.out_stride)) = values[u];
  }
}

__global__ void __launch_bounds__(kBlock) copy_pieces(const __grid_constant__ PiecesArgs args) {
  wait_for_previous();
  int low = 0, high = args.count;  // the piece is in [low, high)
  while (high - low > 1) {
    int middle = (low + high) / 2;
    if (args.pieces[middle].first_block <= blockIdx.x) low = middle;
    else high = middle;
  }
  const Piece& piece = args.pieces[low];
  unsigned begin = (blockIdx.x - piece.first_block) * kUnitsPerBlock + threadIdx.x;
  switch (piece.unit_bytes) {
    case 1: return copy_units<unsigned char>(piece, begin);
    case 2: return copy_units<unsigned short>(piece, begin);
    case 4: return copy_units<unsigned>(piece, begin);
    case 8: return copy_units<unsigned long long>(piece, begin);
    default: return copy_units<uint4>(piece, begin);
  }
}

// A part as rows of contiguous bytes.
struct Rows {
  const char* in;
  char* out;
  std::int64_t count, bytes, in_stride, out_stride;

  // What the pointers and steps are multiples of, at most 16.
  std::int64_t unit_bytes() const {
    auto bits = reinterpret_cast<std::uintptr_t>(in) | reinterpret_cast<std::uintptr_t>(out) |
                static_cast<std::uint64_t>(bytes | in_stride | out_stride) | 16;
    return static_cast<std::int64_t>(bits & -bits);
  }
};

// False where the part is large, or not rows.
bool as_rows(const operations::CopyParts::Part& part, Rows* rows) {
  ArrayView in = part.in.view, out = part.out.view;
  if (out.nbytes() > kMaxBytes) return false;
  ArrayView* views[] = {&out, &in};
  collapse_axes(views, 2);
  std::int64_t size = itemsize(out.dtype);
  *rows = {in.data, out.data, 1, size, 0, 0};
  if (out.ndim() == 0) return true;
  int last = out.ndim() - 1;
  bool dense = in.strides[last] == size && out.strides[last] == size;
  if (last > (dense ? 1 : 0)) return false;
  if (dense) rows->bytes *= out.shape[last];
  if (last == 1 || !dense) {  // rows of one element in the latter case
    rows->count = out.shape[0];
    rows->in_stride = in.strides[0];
    rows->out_stride = out.strides[0];
  }
  return rows->bytes * rows->count <= kMaxBytesOfSmallUnits || rows->unit_bytes() >= 4;
}

void launch_pieces(const char* operation, const LaunchContext& context, const Rows* rows,
                   int count) {
  PiecesArgs args = {};
  args.count = count;
  std::int64_t blocks = 0;
  for (int i = 0; i < count; ++i) {
    const Rows& r = rows[i];
    std::int64_t unit = r.unit_bytes(), units = r.bytes / unit;
    args.pieces[i] = {r.in,
                      r.out,
                      r.in_stride,
                      r.out_stride,
                      FastDiv(units),
                      static_cast<unsigned>(units * r.count),
                      static_cast<unsigned>(blocks),
                      static_cast<unsigned>(unit)};
    blocks += ceil_div(units * r.count, kUnitsPerBlock);
  }
  launch_kernel(operation, context, copy_pieces, blocks, kBlock, args);
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

void CopyParts::run_cuda(const cuda::LaunchContext& context) {
  cuda::Rows rows[cuda::kMaxParts];
  int count = 0;
  for (const Part& part : parts) {
    if (part.out.view.size() == 0) continue;
    if (!cuda::as_rows(part, &rows[count])) {
      cuda::copy_elements(name(), context, part.in.view, part.out.view);
      continue;
    }
    if (++count < cuda::kMaxParts) continue;
    cuda::launch_pieces(name(), context, rows, count);
    count = 0;
  }
  if (count > 0) cuda::launch_pieces(name(), context, rows, count);
}

}  // namespace rensa::operations

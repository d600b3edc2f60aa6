// Copies of several arrays on a GPU: small ones together, in one kernel whose blocks look up which
// of them they belong to.
#include <algorithm>

#include "rensa/backend/cuda/copy.h"
#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/operations/copy_parts/copy_parts.h"

namespace rensa::cuda {

namespace {

constexpr int kMaxParts = 56;                    // as many as fit the 4 KiB of a kernel's arguments
constexpr std::int64_t kMaxBytes = 1 << 20;      // larger parts fill the device on their own
constexpr unsigned kUnitsPerBlock = 4 * kBlock;  // each thread moves four

// Rows of units, contiguous each.
struct Piece {
  const char* in;
  char* out;
  std::int64_t in_stride, out_stride;  // from row to row
  FastDiv row_units;
  unsigned units;        // in all
  unsigned first_block;  // of the grid
};

struct PiecesArgs {
  Piece pieces[kMaxParts];
  int count;
};
static_assert(sizeof(PiecesArgs) <= 4096);

template <class Unit>
__global__ void __launch_bounds__(kBlock) copy_pieces(const __grid_constant__ PiecesArgs args) {
  int low = 0, high = args.count;  // the piece is in [low, high)
  while (high - low > 1) {
    int middle = (low + high) / 2;
    if (args.pieces[middle].first_block <= blockIdx.x) low = middle;
    else high = middle;
  }
  const Piece& piece = args.pieces[low];
  unsigned begin = (blockIdx.x - piece.first_block) * kUnitsPerBlock + threadIdx.x;
#pragma unroll
  for (unsigned u = 0; u < kUnitsPerBlock; u += kBlock) {
    unsigned i = begin + u;
    if (i >= piece.units) break;
    unsigned row = piece.row_units.divide(i);
    std::int64_t column =
        (i - row * piece.row_units.divisor) * static_cast<std::int64_t>(sizeof(Unit));
    *reinterpret_cast<Unit*>(piece.out + row * piece.out_stride + column) =
        *reinterpret_cast<const Unit*>(piece.in + row * piece.in_stride + column);
  }
}

// A part as rows of contiguous bytes.
struct Rows {
  const char* in;
  char* out;
  std::int64_t count, bytes, in_stride, out_stride;

  std::uint64_t alignment() const {
    return reinterpret_cast<std::uintptr_t>(in) | reinterpret_cast<std::uintptr_t>(out) |
           static_cast<std::uint64_t>(bytes | in_stride | out_stride);
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
  rows->bytes *= out.shape[last];
  if (last > 1 || in.strides[last] != size || out.strides[last] != size) return false;
  if (last == 0) return true;
  rows->count = out.shape[0];
  rows->in_stride = in.strides[0];
  rows->out_stride = out.strides[0];
  return true;
}

void launch_pieces(const char* operation, const LaunchContext& context, const Rows* rows,
                   int count) {
  std::uint64_t bits = 16;
  for (int i = 0; i < count; ++i) bits |= rows[i].alignment();
  auto unit = static_cast<std::int64_t>(bits & -bits);  // the lowest bit set, at most 16
  PiecesArgs args = {};
  args.count = count;
  std::int64_t blocks = 0;
  for (int i = 0; i < count; ++i) {
    const Rows& r = rows[i];
    std::int64_t units = r.bytes / unit;
    args.pieces[i] = {r.in,
                      r.out,
                      r.in_stride,
                      r.out_stride,
                      FastDiv(units),
                      static_cast<unsigned>(units * r.count),
                      static_cast<unsigned>(blocks)};
    blocks += ceil_div(units * r.count, kUnitsPerBlock);
  }
  auto launch = [&](auto kernel) {
    launch_kernel(operation, context, kernel, blocks, kBlock, args);
  };
  switch (unit) {
    case 1: return launch(copy_pieces<unsigned char>);
    case 2: return launch(copy_pieces<unsigned short>);
    case 4: return launch(copy_pieces<unsigned>);
    case 8: return launch(copy_pieces<unsigned long long>);
    default: return launch(copy_pieces<uint4>);
  }
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

// Products of short sums by large tiles on tensor cores: a block brings all of its lines of both
// operands at once, and each of its warps has a piece of its tile of c.
#pragma once

#include <algorithm>

#include "rensa/operations/matmul/cuda_tile_ends.cuh"
#include "rensa/operations/matmul/cuda_tile_sums.cuh"

namespace rensa::cuda {

/// A block's tile of c, by warps that have 32 x 32 of it each, and its shared memory: the parts of
/// both operands, then the warps' sums.
template <class E, int kRows, int kColumns, bool kAAlongK, bool kBAlongK> struct PanelBlock {
  using T = Stored<E>;
  using A = OperandPart<T, kRows, kAAlongK>;
  using B = OperandPart<T, kColumns, kBAlongK>;
  using Sums = TileSums<E, 32, 32, A, B>;
  static constexpr int kAcross = kColumns / 32, kWarps = kRows / 32 * kAcross;
  static constexpr int kPartSize = A::kSize + B::kSize, kSumsSize = 32 * Sums::kStride;
  static_assert(kPartSize * sizeof(T) <= (kRows + kColumns) * kPanelLineBytes);

  static int bytes(int k) {
    int parts = ceil_div(k, A::kDepth) * kPartSize * static_cast<int>(sizeof(T));
    return std::max(parts, kWarps * kSumsSize * static_cast<int>(sizeof(float)));
  }
};

template <class E, int kRows, int kColumns, bool kAAlongK, bool kBAlongK>
__global__ void __launch_bounds__(kRows* kColumns / 32)
    panel_kernel(const __grid_constant__ TileArgs p) {
#if RENSA_HAS_TENSOR_CORES
  using Block = PanelBlock<E, kRows, kColumns, kAAlongK, kBAlongK>;
  using A = typename Block::A;
  using B = typename Block::B;
  using T = typename Block::T;
  extern __shared__ uint4 tile_memory[];
  T* parts = reinterpret_cast<T*>(tile_memory);
  int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  int row0 = static_cast<int>(blockIdx.y) * kRows;
  int column0 = static_cast<int>(blockIdx.x) * kColumns;
  const T* a = static_cast<const T*>(p.a) + blockIdx.z * p.a_batch;
  const T* b = static_cast<const T*>(p.b) + blockIdx.z * p.b_batch;
#pragma unroll 1
  for (int early = 1; early >= 0; --early) {
    if (early == 0) wait_for_previous();
#pragma unroll 1
    for (int i = warp; i * A::kDepth < p.k; i += Block::kWarps) {
      T *part = parts + i * Block::kPartSize, *part_of_b = part + A::kSize;
      int k = i * A::kDepth;
      if (p.a_settled == early) A::template bring<true>(part, a, p.a_ld, row0, p.m, k, p.k);
      if (p.b_settled == early) B::template bring<true>(part_of_b, b, p.b_ld, column0, p.n, k, p.k);
    }
  }
  wait_for_copies();
  __syncthreads();
  int warp_row = warp / Block::kAcross * 32, warp_column = warp % Block::kAcross * 32;
  typename Block::Sums sums;
  const T* of_a = parts + A::offset(warp_row, 0);
  const T* of_b = parts + A::kSize + B::offset(warp_column, 0);
#pragma unroll 1
  for (int k = 0; k < p.k; k += A::kDepth) {
    sums.add(of_a, of_b);
    of_a += Block::kPartSize;
    of_b += Block::kPartSize;
  }
  TileEnds<E, 32, 32> ends(p, {row0 + warp_row, column0 + warp_column}, lane, 32);
  __syncthreads();
  float* mine = reinterpret_cast<float*>(tile_memory) + warp * Block::kSumsSize;
  sums.store(mine);
  __syncwarp();
#pragma unroll 4
  for (int row = 0; row < ends.rows; ++row) {
    ends.store(p, row, mine[row * Block::Sums::kStride + lane]);
  }
#endif
}

/// By tiles of kRows x kColumns.
template <class E, int kRows, int kColumns>
void launch_panels(const TileArgs& args, const LaunchContext& context) {
  launch_by_layout(args, [&]<bool kAAlongK, bool kBAlongK>() {
    auto kernel = panel_kernel<E, kRows, kColumns, kAAlongK, kBAlongK>;
    using Block = PanelBlock<E, kRows, kColumns, kAAlongK, kBAlongK>;
    launch_tiles(kernel, args, kRows, kColumns, Block::kWarps, Block::bytes(args.k), context);
  });
}

}  // namespace rensa::cuda

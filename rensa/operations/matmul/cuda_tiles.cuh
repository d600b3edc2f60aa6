// The kernel of cuda_tiles.h, and its launch in one of its forms.
#pragma once

#include <algorithm>

#include "rensa/operations/matmul/cuda_boxes.cuh"
#include "rensa/operations/matmul/cuda_panels.cuh"
#include "rensa/operations/matmul/cuda_tile_ends.cuh"
#include "rensa/operations/matmul/cuda_tile_sums.cuh"
#include "rensa/operations/matmul/cuda_tiles.h"

namespace rensa::cuda {

/// The shared memory of one warp: two parts of each operand, of which one comes while the other is
/// added (one where a warp has no more), and then its sums.
template <class E, int kRows, int kColumns, bool kAAlongK, bool kBAlongK> struct TileWarp {
  using T = Stored<E>;
  using A = OperandPart<T, kRows, kAAlongK>;
  using B = OperandPart<T, kColumns, kBAlongK>;
  using Sums = TileSums<E, kRows, kColumns, A, B>;
  static constexpr int kPartBytes = (A::kSize + B::kSize) * static_cast<int>(sizeof(T));
  static constexpr int kSumBytes = kRows * Sums::kStride * static_cast<int>(sizeof(float));

  RENSA_FN static int bytes(int k, int warps) {
    int parts = k > warps * A::kDepth ? 2 * kPartBytes : kPartBytes;
    return parts > kSumBytes ? parts : kSumBytes;
  }
};

template <class E, int kRows, int kColumns, bool kAAlongK, bool kBAlongK, bool kAChunks,
          bool kBChunks>
__global__ void __launch_bounds__(kRows* kColumns >= 1024 ? 256 : 512)
    tile_kernel(const __grid_constant__ TileArgs p) {
#if RENSA_HAS_TENSOR_CORES
  using Warp = TileWarp<E, kRows, kColumns, kAAlongK, kBAlongK>;
  using A = typename Warp::A;
  using B = typename Warp::B;
  using T = typename Warp::T;
  extern __shared__ uint4 tile_memory[];
  int warps = static_cast<int>(blockDim.x) / 32, warp = static_cast<int>(threadIdx.x) / 32;
  int bytes = Warp::bytes(p.k, warps);
  auto* all = reinterpret_cast<char*>(tile_memory);
  T* mine = reinterpret_cast<T*>(all + warp * bytes);
  int row0 = static_cast<int>(blockIdx.y) * kRows,
      column0 = static_cast<int>(blockIdx.x) * kColumns;
  const T* a = static_cast<const T*>(p.a) + blockIdx.z * p.a_batch;
  const T* b = static_cast<const T*>(p.b) + blockIdx.z * p.b_batch;
  auto part_of_a = [&](int part) { return mine + part * (A::kSize + B::kSize); };
  auto bring_a = [&](int part, int k) {
    if (k < p.k) A::template bring<kAChunks>(part_of_a(part), a, p.a_ld, row0, p.m, k, p.k);
  };
  auto bring_b = [&](int part, int k) {
    T* to = part_of_a(part) + A::kSize;
    if (k < p.k) B::template bring<kBChunks>(to, b, p.b_ld, column0, p.n, k, p.k);
  };
  typename Warp::Sums sums;
  int k = warp * A::kDepth, step = warps * A::kDepth, part = 0;
  if (p.a_settled) bring_a(0, k);
  if (p.b_settled) bring_b(0, k);
  wait_for_previous();
  if (!p.a_settled) bring_a(0, k);
  if (!p.b_settled) bring_b(0, k);
  close_group();
  TileEnds<E, kRows, kColumns> ends(p, {row0, column0}, static_cast<int>(threadIdx.x),
                                    static_cast<int>(blockDim.x));
#pragma unroll 1
  for (; k < p.k; k += step) {
    bring_a(1 - part, k + step);
    bring_b(1 - part, k + step);
    close_group();
    wait_for_older_groups();
    __syncwarp();
    sums.add(part_of_a(part), part_of_a(part) + A::kSize);
    __syncwarp();
    part = 1 - part;
  }
  wait_for_copies();
  sums.store(reinterpret_cast<float*>(mine));
  __syncthreads();
  ends.template store_sums<Warp::Sums::kStride>(p, all, bytes, warps);
#endif
}

template <class E, int kRows, int kColumns, bool kAAlongK, bool kBAlongK, bool kAChunks,
          bool kBChunks>
void launch_tile_kernel(const TileArgs& args, int warps, const LaunchContext& context) {
  auto kernel = tile_kernel<E, kRows, kColumns, kAAlongK, kBAlongK, kAChunks, kBChunks>;
  int bytes = warps * TileWarp<E, kRows, kColumns, kAAlongK, kBAlongK>::bytes(args.k, warps);
  // Kernels come while those before are there still. Large blocks, of which the GPU has a processor
  // for each, would gather on those that are free, two on one; with short sums that costs less than
  // to come later.
  constexpr int kLongSum = 256;
  std::int64_t blocks = ceil_div(args.n, kColumns) * ceil_div(args.m, kRows) * args.batch;
  if (kRows * kColumns >= 1024 && args.k > kLongSum && blocks <= kMultiprocessors) {
    bytes = std::max(bytes, memory_of_one_alone(context.device));
  }
  launch_tiles(kernel, args, kRows, kColumns, warps, bytes, context);
}

/// By tiles of kRows x kColumns. Large tiles of operands that cannot both be read in chunks are no
/// forms. Where b alone cannot, a is read by its elements as well.
template <class E, int kRows, int kColumns>
void launch_tile_size(const TileArgs& args, int warps, const LaunchContext& context) {
  launch_by_layout(args, [&]<bool kAAlongK, bool kBAlongK>() {
    auto by = [&]<bool kAChunks, bool kBChunks>() {
      launch_tile_kernel<E, kRows, kColumns, kAAlongK, kBAlongK, kAChunks, kBChunks>(args, warps,
                                                                                     context);
    };
    if (args.a_chunks && args.b_chunks) return by.template operator()<true, true>();
    if constexpr (kRows * kColumns <= kMaxTileInElements) {
      if (args.b_chunks) by.template operator()<false, true>();
      else by.template operator()<false, false>();
    }
  });
}

/// By tiles of a size that there is for all kinds of elements, and in boxes.
template <class E>
void launch_common_size(const TileArgs& args, TileForm form, const LaunchContext& context) {
  using Boxed = std::conditional_t<std::is_same_v<E, Tf32>, BroughtTf32, E>;
  auto by = [&]<int kRows, int kColumns>() {
    if (form.boxes) launch_boxes<Boxed, kRows, kColumns>(args, form.warps, context);
    else launch_tile_size<E, kRows, kColumns>(args, form.warps, context);
  };
  if (form.rows == 32) by.template operator()<32, 32>();
  else if (form.columns == 32) by.template operator()<16, 32>();
  else by.template operator()<16, 16>();
}

/// By tiles on tensor cores.
template <class E>
void launch_tensor_tiles(const TileArgs& args, TileForm form, const LaunchContext& context) {
  if (form.rows == 128) launch_panels<E, 128, 64>(args, context);
  else if (form.rows == 64) launch_panels<E, 64, 64>(args, context);
  else if (form.columns == 8) launch_tile_size<E, 16, 8>(args, form.warps, context);
  else launch_common_size<E>(args, form, context);
}

}  // namespace rensa::cuda

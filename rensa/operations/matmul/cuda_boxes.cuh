// Products by tiles, as those of cuda_tiles.cuh, of which each warp has its parts of the operands
// brought in boxes: the GPU does so faster than threads do by copies of 16 bytes.
#pragma once

#include <utility>

#include "rensa/backend/cuda/boxes.cuh"
#include "rensa/operations/matmul/cuda_tile_ends.cuh"
#include "rensa/operations/matmul/cuda_tile_sums.cuh"

namespace rensa::cuda {

struct BoxArgs : TileArgs {
  CUtensorMap a_map, b_map;
};

/// The matrix of a block's batch that an operand with that batch stride has: one for all, or each
/// its own.
__device__ __forceinline__ int matrix_of_block(std::int64_t batch_stride) {
  return batch_stride ? static_cast<int>(blockIdx.z) : 0;
}

/// Part of an operand in shared memory, as OperandPart: a box whose inner side is k where kAlongK.
template <class T, int kLines, bool kAlongK, int kTerms = kBoxDepthBytes / int{sizeof(T)}>
struct OperandBox {
  static constexpr bool along_k = kAlongK;
  static constexpr int kChunk = 16 / static_cast<int>(sizeof(T));
  static constexpr int kStep = 4 * kChunk, kDepth = kTerms;
  using Place = std::conditional_t<kAlongK, Box<T, kDepth, kLines>, Box<T, kLines, kDepth>>;
  static constexpr int kSize = Place::kSize, kEightLines = 8 * kDepth;

  static __device__ __forceinline__ int offset(int line, int k) {
    return kAlongK ? Place::offset(k, line) : Place::offset(line, k);
  }
  /// As OperandPart's. Of floats that do not lie along k an eight is made of two fours whose chunks
  /// lie in different banks for each four of k.
  static __device__ __forceinline__ int line(int eight, int i) {
    if (kAlongK || sizeof(T) == 2) return eight * 8 + i;
    return eight * 4 + i % 4 + i / 4 * (kLines / 2);
  }
#if RENSA_HAS_BOXES
  static __device__ __forceinline__ void bring(T* part, const CUtensorMap& map, int line, int k,
                                               int batch, BoxBarrier& barrier) {
    bring_box(part, map, kAlongK ? k : line, kAlongK ? line : k, batch, barrier);
  }
#endif
  /// Where the box of tile `tile` begins. Along k a box has no lines beyond the operand's `lines`,
  /// as the GPU is slow to bring those to many blocks: the last tile begins within the one before
  /// it, and an operand of fewer lines than a tile has smaller boxes.
  static __device__ __forceinline__ int first_line(int tile, int lines) {
    int first = tile * kLines;
    return kAlongK ? max(min(first, lines - kLines), 0) : first;
  }
  RENSA_FN static int lines_of_box(int lines) { return kAlongK && lines < kLines ? lines : kLines; }
  static __device__ __forceinline__ int bytes(int lines) {
    return lines_of_box(lines) * kDepth * static_cast<int>(sizeof(T));
  }
  /// Of `lines` lines, for what is multiplied as E.
  template <class E>
  static CUtensorMap map(const TileArgs& args, const void* data, std::int64_t lines,
                         std::int64_t ld, std::int64_t batch_stride) {
    int box_lines = kAlongK ? lines_of_box(static_cast<int>(lines)) : Place::kOuter;
    std::int64_t width = args.k;
    if (!kAlongK) std::swap(width, lines);
    BatchOfMatrices x{data, dtype_of<T>, width, lines, args.batch, ld, batch_stride};
    x.to_tf32 = std::is_same_v<E, BroughtTf32>;
    return tensor_map("matmul", x, Place::kInner, box_lines);
  }
};

/// With the operands A and B, of what is multiplied as E.
template <class E, class A, class B> BoxArgs box_args(const TileArgs& args) {
  return {args, A::template map<E>(args, args.a, args.m, args.a_ld, args.a_batch),
          B::template map<E>(args, args.b, args.n, args.b_ld, args.b_batch)};
}

/// So that `place` is not worked out again for each part.
__device__ __forceinline__ void keep(int& place) { asm volatile("" : "+r"(place)); }

/// The place of a block's tile, of whose rows it has the operand Of::A, and of whose columns Of::B.
template <class Of, int kRows, int kColumns>
__device__ __forceinline__ TilePlace place_of_block(const TileArgs& p) {
  int y = static_cast<int>(blockIdx.y), x = static_cast<int>(blockIdx.x);
  int row0 = Of::A::first_line(y, p.m), column0 = Of::B::first_line(x, p.n);
  return {row0, column0, y * kRows - row0, x * kColumns - column0};
}

/// The shared memory of one warp: two parts of each operand (one where a warp has no more), and
/// then its sums.
template <class E, int kRows, int kColumns, bool kBAlongK> struct BoxWarp {
  using T = Stored<E>;
  using A = OperandBox<T, kRows, true>;
  using B = OperandBox<T, kColumns, kBAlongK>;
  using Sums = TileSums<E, kRows, kColumns, A, B>;
  static constexpr int kPartSize = A::kSize + B::kSize;
  static constexpr int kPartBytes = kPartSize * static_cast<int>(sizeof(T));
  static_assert(kRows * kBoxDepthBytes % kBoxAlignment == 0);
  static_assert(kColumns * kBoxDepthBytes % kBoxAlignment == 0);
  static_assert(kRows * Sums::kStride * sizeof(float) <= kPartBytes);

  static int bytes(int k, int warps) {
    return k > warps * A::kDepth ? kWarpParts * kPartBytes : kPartBytes;
  }
};

template <class E, int kRows, int kColumns, bool kBAlongK>
__global__ void __launch_bounds__(kRows* kColumns >= 1024 ? 256 : 512)
    box_kernel(const __grid_constant__ BoxArgs p) {
#if RENSA_HAS_BOXES
  using Warp = BoxWarp<E, kRows, kColumns, kBAlongK>;
  using A = typename Warp::A;
  using B = typename Warp::B;
  using T = typename Warp::T;
  extern __shared__ uint4 tile_memory[];
  __shared__ BoxBarrier barriers[16][kWarpParts];
  int warps = static_cast<int>(blockDim.x) / 32, warp = static_cast<int>(threadIdx.x) / 32;
  char* all = reinterpret_cast<char*>(tile_memory);
  all += -shared_address(all) % kBoxAlignment;
  // The first parts of all warps, and later their sums, lie together.
  auto part_of_a = [&](int part) {
    return reinterpret_cast<T*>(all + (part * warps + warp) * Warp::kPartBytes);
  };
  BoxBarrier* there = barriers[warp];
  TilePlace tile = place_of_block<Warp, kRows, kColumns>(p);
  int bytes = A::bytes(p.m) + B::bytes(p.n);
  int a_batch = matrix_of_block(p.a_batch), b_batch = matrix_of_block(p.b_batch);
  auto bring_a = [&](int part, int k) {
    A::bring(part_of_a(part), p.a_map, tile.row0, k, a_batch, there[part]);
  };
  auto bring_b = [&](int part, int k) {
    B::bring(part_of_a(part) + A::kSize, p.b_map, tile.column0, k, b_batch, there[part]);
  };
  int k = warp * A::kDepth, step = warps * A::kDepth;
  bool leads = threadIdx.x % 32 == 0;
  // The first part before the second, so that it is there soon.
  auto bring_first = [&](bool settled) {
    if (k >= p.k) return;
    if (p.a_settled == settled) bring_a(0, k);
    if (p.b_settled == settled) bring_b(0, k);
  };
  if (leads) {
    prefetch_map(p.a_map);
    prefetch_map(p.b_map);
    there[0].init();
    there[1].init();
    open_barriers();
    if (k < p.k) there[0].expect(bytes);
    bring_first(true);
  }
  __syncwarp();
  wait_for_previous();
  auto bring = [&](int part, int k) {
    there[part].expect(bytes);
    bring_a(part, k);
    bring_b(part, k);
  };
  if (leads) {
    bring_first(false);
    if (k + step < p.k) bring(1, k + step);
  }
  TileEnds<E, kRows, kColumns> ends(p, tile, static_cast<int>(threadIdx.x),
                                    static_cast<int>(blockDim.x));
  typename Warp::Sums sums;
  int part = 0, parity = 0;
#pragma unroll 1
  for (; k < p.k; k += step) {
    there[part].wait(parity);
    __syncwarp();
    const T* a = part_of_a(part);
    sums.add(a, a + A::kSize);
    __syncwarp();
    int next = k + kWarpParts * step;
    if (leads && next < p.k) bring(part, next);
    if (part == 1) parity = 1 - parity;
    part = 1 - part;
  }
  sums.store(reinterpret_cast<float*>(part_of_a(0)));
  __syncthreads();
  ends.template store_sums<Warp::Sums::kStride>(p, all, Warp::kPartBytes, warps);
#endif
}

/// By tiles of kRows x kColumns. a lies along k, and both operands come in chunks.
template <class E, int kRows, int kColumns>
void launch_boxes(const TileArgs& args, int warps, const LaunchContext& context) {
  auto by = [&]<bool kBAlongK>() {
    using Warp = BoxWarp<E, kRows, kColumns, kBAlongK>;
    auto boxes = box_args<E, typename Warp::A, typename Warp::B>(args);
    int bytes = warps * Warp::bytes(args.k, warps) + kBoxAlignment;
    launch_tiles(box_kernel<E, kRows, kColumns, kBAlongK>, boxes, kRows, kColumns, warps, bytes,
                 context);
  };
  if (args.b_along_k) by.template operator()<true>();
  else by.template operator()<false>();
}

}  // namespace rensa::cuda

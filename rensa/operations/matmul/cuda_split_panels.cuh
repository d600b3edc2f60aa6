// Products of float32 by large tiles on Hopper's tensor cores, which multiply each float as the sum
// of two TF32 numbers. Parts of both operands come in boxes, several of them ahead; of a part, b's
// numbers are split into shared memory and a's into registers while the tensor cores work on the
// part before.
#pragma once

#include <algorithm>

#include "rensa/backend/cuda/warpgroups.cuh"
#include "rensa/operations/matmul/cuda_boxes.cuh"

namespace rensa::cuda {

/// A block's tile of c, by warps that have sixteen rows of it each, and its shared memory: as many
/// parts of both operands as there are, up to kMostSplitParts, in boxes of 32 lines, those of a
/// first; then three places for a part of b that is split. At the end c's tile is where the parts
/// were.
template <int kRows, bool kAAlongK, bool kBAlongK> struct SplitPanel {
  using A = OperandBox<float, 32, kAAlongK>;
  using B = OperandBox<float, 32, kBAlongK>;
  static constexpr int kColumns = 64, kDepth = A::kDepth, kWarps = kRows / 16;
  static constexpr int kDown = kRows / 32, kAcross = kColumns / 32;
  // Boxes along k lie one behind the other as one box does.
  using BroughtA = OperandBox<float, kAAlongK ? kRows : 32, kAAlongK>;
  using BroughtB = OperandBox<float, kBAlongK ? kColumns : 32, kBAlongK>;
  static constexpr int kPartSize = (kDown + kAcross) * A::kSize;
  static constexpr int kPartBytes = kPartSize * static_cast<int>(sizeof(float));
  // Of b's columns along k, as matrix_in_lines says: the nearest TF32 numbers, then what they
  // leave.
  using Columns = Box<float, kDepth, kColumns>;
  static constexpr int kSplitSize = 2 * Columns::kSize, kSplitPlaces = 3;
  static constexpr int kStride = kColumns + 8;  // of a row of sums in shared memory

  /// An even number: the last one may be zeros alone.
  RENSA_FN static int parts(int k) { return (k + 2 * kDepth - 1) / (2 * kDepth) * 2; }
  RENSA_FN static int parts_size(int k) {
    int there = parts(k) < kMostSplitParts ? parts(k) : kMostSplitParts;
    return there * kPartSize;
  }
  static_assert(kSplitPlaces * kSplitSize * sizeof(float) == kSplitColumnsBytes);
  static int bytes(int k) {
    int size = std::max(parts_size(k) + kSplitPlaces * kSplitSize, kRows * kStride);
    return size * static_cast<int>(sizeof(float)) + kBoxAlignment;
  }
};

#if RENSA_HAS_WARPGROUPS

/// A thread's sums of a warpgroup's 64 x 64, and what its warp multiplies.
template <class Panel> class SplitPanelSums {
 public:
  using A = typename Panel::A;
  using B = typename Panel::B;
  using Columns = typename Panel::Columns;
  static constexpr int kSteps = Panel::kDepth / 8;

  /// Splits a part: of a the warp's rows, of b what is the thread's to do for its block.
  template <int kTurn> __device__ __forceinline__ void split(const float* part, float* columns) {
    constexpr int kFours = Panel::kDepth / 4, kThreads = 32 * Panel::kWarps;
    constexpr int kEach = Panel::kColumns * kFours / kThreads;
    int warp = static_cast<int>(threadIdx.x) / 32;
    unsigned rows[kSteps][4], words[kEach][4];
    int to[kEach];
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      load_rows<SplitFloat, A>(rows[step], part + warp / 2 * A::kSize, warp % 2, step * 8);
    }
#pragma unroll
    for (int n = 0; n < kEach; ++n) {
      int i = n * kThreads + static_cast<int>(threadIdx.x);
      int column = B::along_k ? i / kFours : i % Panel::kColumns;
      int k = B::along_k ? i % kFours * 4 : i / Panel::kColumns * 4;
      load_four(words[n], part + Panel::kDown * A::kSize + column / 32 * B::kSize, column % 32, k);
      to[n] = Columns::offset(k, column);
    }
#pragma unroll
    for (int n = 0; n < kEach; ++n) {
      OperandWords<SplitFloat> four;
      four.set(words[n]);
      store_four(columns + to[n], four.part[0]);
      store_four(columns + Columns::kSize + to[n], four.part[1]);
    }
    show_to_products();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) rows_[kTurn][step].set(rows[step]);
  }
  /// Has the products of what was split computed, from nothing.
  template <int kTurn> __device__ __forceinline__ void multiply(const float* columns) {
    std::uint64_t nearest = matrix_in_lines(columns);
    std::uint64_t rest = matrix_in_lines(columns + Columns::kSize);
    open_products();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const OperandWords<SplitFloat>& rows = rows_[kTurn][step];
      multiply_later(part_[kTurn], rows.part[1], nearest + 2 * step, step > 0);
      multiply_later(part_[kTurn], rows.part[0], rest + 2 * step, true);
      multiply_later(part_[kTurn], rows.part[0], nearest + 2 * step, true);
    }
    close_products();
  }
  /// Waits for them, but not for the kLater groups that came later. Tensor cores cut off what a sum
  /// gains, rather than round it, so they add up no more than a part, and float32 additions the
  /// parts.
  template <int kTurn, int kLater> __device__ __forceinline__ void add() {
    wait_for_products<kLater>(part_[kTurn]);
#pragma unroll
    for (int i = 0; i < 32; ++i) sum_[i] += part_[kTurn][i];
  }
  /// Stores the sums of the tile that begins at (row0, column0) as they are, in pairs.
  __device__ __forceinline__ void store(const TileArgs& p, int row0, int column0) const {
    float* c = static_cast<float*>(p.c) + blockIdx.z * p.c_batch;
    for_each_pair([&](int row, int column, Pack<float, 2> pair) {
      row += row0, column += column0;
      if (row >= p.m || column >= p.n) return;
      if (!isfinite(pair.value[0]) || !isfinite(pair.value[1])) {
        for (int e = 0; e < 2; ++e) pair.value[e] = plain_sum(p, row, column + e);
      }
      *reinterpret_cast<Pack<float, 2>*>(c + row * p.c_ld + column) = pair;
    });
  }
  /// To the block's tile in shared memory.
  __device__ __forceinline__ void store(float* tile) const {
    for_each_pair([&](int row, int column, Pack<float, 2> pair) {
      *reinterpret_cast<Pack<float, 2>*>(tile + row * Panel::kStride + column) = pair;
    });
  }

 private:
  /// Four terms of a column of a box of b.
  static __device__ __forceinline__ void load_four(unsigned (&words)[4], const float* box,
                                                   int column, int k) {
    if constexpr (B::along_k) {
      auto four = *reinterpret_cast<const Pack<unsigned, 4>*>(box + B::offset(column, k));
#pragma unroll
      for (int e = 0; e < 4; ++e) words[e] = four.value[e];
    } else {
#pragma unroll
      for (int e = 0; e < 4; ++e) words[e] = __float_as_uint(box[B::offset(column, k + e)]);
    }
  }
  static __device__ __forceinline__ void store_four(float* to, const unsigned (&words)[4]) {
    *reinterpret_cast<Pack<unsigned, 4>*>(to) = {{words[0], words[1], words[2], words[3]}};
  }

  /// Calls f(row and column in the block's tile, two sums of the thread).
  template <class F> __device__ __forceinline__ void for_each_pair(F&& f) const {
    int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int row = warp / 2 * 32 + A::line(warp % 2 * 2 + half, lane / 4);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        Pack<float, 2> pair{{sum_[4 * j + 2 * half], sum_[4 * j + 2 * half + 1]}};
        f(row, 8 * j + lane % 4 * 2, pair);
      }
    }
  }

  OperandWords<SplitFloat> rows_[2][kSteps];
  float part_[2][32], sum_[32] = {};
};

#endif

template <int kRows, bool kAAlongK, bool kBAlongK>
__global__ void __launch_bounds__(kRows * 2) split_panel_kernel(const __grid_constant__ BoxArgs p) {
#if RENSA_HAS_WARPGROUPS
  using Panel = SplitPanel<kRows, kAAlongK, kBAlongK>;
  using A = typename Panel::A;
  using BroughtA = typename Panel::BroughtA;
  using BroughtB = typename Panel::BroughtB;
  extern __shared__ uint4 tile_memory[];
  __shared__ BoxBarrier there[kMostSplitParts];
  char* all = reinterpret_cast<char*>(tile_memory);
  float* parts = reinterpret_cast<float*>(all + -shared_address(all) % kBoxAlignment);
  float* columns = parts + Panel::parts_size(p.k);
  int row0 = static_cast<int>(blockIdx.y) * kRows;
  int column0 = static_cast<int>(blockIdx.x) * Panel::kColumns;
  int a_batch = p.a_batch ? static_cast<int>(blockIdx.z) : 0;
  int b_batch = p.b_batch ? static_cast<int>(blockIdx.z) : 0;
  int count = Panel::parts(p.k);
  auto bring_a = [&](int part, int place) {
    float* to = parts + place * Panel::kPartSize;
#pragma unroll
    for (int row = 0; row < kRows; row += BroughtA::kLineCount, to += BroughtA::kSize) {
      BroughtA::bring(to, p.a_map, row0 + row, part * Panel::kDepth, a_batch, there[place]);
    }
  };
  auto bring_b = [&](int part, int place) {
    float* to = parts + place * Panel::kPartSize + Panel::kDown * A::kSize;
#pragma unroll
    for (int column = 0; column < Panel::kColumns; column += BroughtB::kLineCount) {
      BroughtB::bring(to, p.b_map, column0 + column, part * Panel::kDepth, b_batch, there[place]);
      to += BroughtB::kSize;
    }
  };
  auto bring_first = [&](bool settled) {
    int first = min(count, kMostSplitParts);
#pragma unroll 1
    for (int part = 0; part < first; ++part) {
      if (p.a_settled == settled) bring_a(part, part);
      if (p.b_settled == settled) bring_b(part, part);
    }
  };
  bool brings = threadIdx.x == 0;
  if (brings) {
    prefetch_map(p.a_map);
    prefetch_map(p.b_map);
    int first = min(count, kMostSplitParts);
#pragma unroll 1
    for (int part = 0; part < first; ++part) there[part].init();
    open_barriers();
#pragma unroll 1
    for (int part = 0; part < first; ++part) there[part].expect(Panel::kPartBytes);
    bring_first(true);
  }
  wait_for_previous();
  if (brings) bring_first(false);
  __syncthreads();

  int place = 0, parity = 0;
  SplitPanelSums<Panel> sums;
  auto columns_of = [&](int part) {
    return columns + part % Panel::kSplitPlaces * Panel::kSplitSize;
  };
  auto split = [&]<int kTurn>(int part) {
    there[place].wait(parity);
    __syncwarp();
    sums.template split<kTurn>(parts + place * Panel::kPartSize, columns_of(part));
  };
  // When all warps have split the part.
  auto multiply = [&]<int kTurn>(int part) {
    __syncthreads();
    sums.template multiply<kTurn>(columns_of(part));
    int next = part + kMostSplitParts;
    if (brings && next < count) {
      there[place].expect(Panel::kPartBytes);
      bring_a(next, place);
      bring_b(next, place);
    }
    if (++place == kMostSplitParts) place = 0, parity ^= 1;
  };
  split.template operator()<0>(0);
#pragma unroll 1
  for (int part = 0; part < count; part += 2) {
    multiply.template operator()<0>(part);
    split.template operator()<1>(part + 1);
    multiply.template operator()<1>(part + 1);
    sums.template add<0, 1>();
    if (part + 2 < count) split.template operator()<0>(part + 2);
    sums.template add<1, 0>();
  }
  bool as_they_are =
      p.alpha == 1.0f && !p.bias && !p.gate && p.activation == operations::Activation::none;
  bool in_pairs = p.n % 2 == 0 && p.c_ld % 2 == 0 && p.c_batch % 2 == 0 &&
                  reinterpret_cast<std::uintptr_t>(p.c) % sizeof(Pack<float, 2>) == 0;
  if (as_they_are && in_pairs) return sums.store(p, row0, column0);
  __syncthreads();
  sums.store(parts);
  __syncthreads();
  int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll 1  // the code of more would come late
  for (int i = 0; i < Panel::kAcross; ++i) {
    TileEnds<SplitFloat, 16, 32> ends(p, row0 + warp * 16, column0 + i * 32, lane, 32);
    const float* mine = parts + warp * 16 * Panel::kStride + i * 32;
#pragma unroll 2
    for (int row = 0; row < ends.rows; ++row) {
      ends.store(p, row, mine[row * Panel::kStride + lane]);
    }
  }
#endif
}

/// By tiles of kRows x 64. Both operands come in chunks.
template <int kRows> void launch_split_panels(const TileArgs& args, const LaunchContext& context) {
  launch_by_layout(args, [&]<bool kAAlongK, bool kBAlongK>() {
    using Panel = SplitPanel<kRows, kAAlongK, kBAlongK>;
    BoxArgs boxes{args, Panel::BroughtA::map(args, args.a, args.m, args.a_ld, args.a_batch),
                  Panel::BroughtB::map(args, args.b, args.n, args.b_ld, args.b_batch)};
    launch_tiles(split_panel_kernel<kRows, kAAlongK, kBAlongK>, boxes, kRows, Panel::kColumns,
                 Panel::kWarps, Panel::bytes(args.k), context);
  });
}

}  // namespace rensa::cuda

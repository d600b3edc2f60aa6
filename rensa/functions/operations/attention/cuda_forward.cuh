// Attention on tensor cores: a block has queries, each of its warps the same number of them, and
// goes over the keys tile by tile.
#pragma once

#include "rensa/functions/operations/attention/cuda_tensor_cores.cuh"

namespace rensa::cuda {

template <class E> struct ForwardTiles {
  static constexpr int kWarpTiles = is_16bit<E> ? 2 : 1;  // of 16 queries
  static constexpr int kWarpRows = 16 * kWarpTiles, kQueries = kTileWarps * kWarpRows;
  static constexpr int kKeys = is_16bit<E> ? 64 : 32;  // of a tile
};

#if RENSA_HAS_TENSOR_CORES

/// What a thread knows of its rows: of 16-row tile m the rows lane / 4 and lane / 4 + 8.
template <int kWarpTiles> struct RunningRows {
  float greatest[kWarpTiles][2];
  float total[kWarpTiles][2];  // of the thread's columns
};

// The other threads of a row are the next ones.
__device__ __forceinline__ float greatest_of_row(float x) {
  x = fmaxf(x, shuffle_xor(x, 1));
  return fmaxf(x, shuffle_xor(x, 2));
}
__device__ __forceinline__ float sum_of_row(float x) {
  x += shuffle_xor(x, 1);
  return x + shuffle_xor(x, 2);
}

/// Masks of a tile whose first score is that of query i and key j.
template <bool kGeneral, int kWarpTiles, int kChunks>
__device__ __forceinline__ void mask_scores(float (&s)[kWarpTiles][kChunks][4],
                                            const HeadMask<float>& mask, int i, int j, int queries,
                                            float scale) {
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int m = 0; m < kWarpTiles; ++m) {
#pragma unroll
    for (int n = 0; n < kChunks; ++n) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        int row = i + m * 16 + lane / 4 + k / 2 * 8, column = j + n * 8 + lane % 4 * 2 + k % 2;
        if constexpr (kGeneral) {
          s[m][n][k] = mask.apply(s[m][n][k] * scale, row, column, queries, kLog2E);
        } else if (mask.hides(row, column)) {
          s[m][n][k] = -m::infinity<float>();
        }
      }
    }
  }
}

/// Scores to weights beside the greatest score so far; sums are scaled to it.
template <int D, int kWarpTiles, int kChunks>
__device__ __forceinline__ void weigh(float (&s)[kWarpTiles][kChunks][4],
                                      RunningRows<kWarpTiles>& rows,
                                      float (&out)[kWarpTiles][D / 8][4], float scale) {
#pragma unroll
  for (int m = 0; m < kWarpTiles; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float before = rows.greatest[m][half], greatest = before;
#pragma unroll
      for (int n = 0; n < kChunks; ++n) {
        greatest = fmaxf(greatest, fmaxf(s[m][n][half * 2], s[m][n][half * 2 + 1]));
      }
      greatest = greatest_of_row(greatest);
      rows.greatest[m][half] = greatest;
      float reference = greatest == -m::infinity<float>() ? 0.0f : greatest * scale;
      float factor = exp2_of(fmaf(before, scale, -reference));
      float total = 0;
#pragma unroll
      for (int n = 0; n < kChunks; ++n) {
#pragma unroll
        for (int k = half * 2; k < half * 2 + 2; ++k) {
          s[m][n][k] = exp2_of(fmaf(s[m][n][k], scale, -reference));
          total += s[m][n][k];
        }
      }
      rows.total[m][half] = fmaf(rows.total[m][half], factor, total);
      // Mostly the greatest score is an earlier one.
      if (__any_sync(0xffffffffu, factor != 1.0f)) {
#pragma unroll
        for (int n = 0; n < D / 8; ++n) {
          out[m][n][half * 2] *= factor;
          out[m][n][half * 2 + 1] *= factor;
        }
      }
    }
  }
}

/// Weights that dropout takes away; those that stay are scaled at the end.
template <int kWarpTiles, int kChunks>
__device__ __forceinline__ void drop(float (&s)[kWarpTiles][kChunks][4],
                                     const AttentionDropoutWords& dropout, long long head, int i,
                                     int j) {
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int m = 0; m < kWarpTiles; ++m) {
#pragma unroll
    for (int n = 0; n < kChunks; n += 2) {
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        PhiloxWords words =
            dropout.words(head, i + m * 16 + lane / 4, j + n * 8 + lane % 4 * 2 + k);
        if (!dropout.keeps(words.word[0])) s[m][n][k] = 0;
        if (!dropout.keeps(words.word[1])) s[m][n + 1][k] = 0;
        if (!dropout.keeps(words.word[2])) s[m][n][k + 2] = 0;
        if (!dropout.keeps(words.word[3])) s[m][n + 1][k + 2] = 0;
      }
    }
  }
}

#endif

template <class E, int D, bool kGeneral>
__global__ void __launch_bounds__(kTileBlock, D > 64 || kGeneral ? 2 : 3)
    attention_forward(const __grid_constant__ AttentionArgs args) {
  wait_for_previous();
#if RENSA_HAS_TENSOR_CORES
  extern __shared__ uint4 attention_tiles[];
  using T = Stored<E>;
  using Sizes = ForwardTiles<E>;
  constexpr int kWarpTiles = Sizes::kWarpTiles, kWarpRows = Sizes::kWarpRows;
  constexpr int kQueries = Sizes::kQueries, kKeys = Sizes::kKeys;
  constexpr int kTile = kKeys * D;
  T* query = reinterpret_cast<T*>(attention_tiles);
  T* keys = query + kQueries * D;
  T* values = keys + 2 * kTile;
  int blocks = (args.queries + kQueries - 1) / kQueries;
  BlockPlace place(args, args.batch * args.heads, blocks);
  int block = blocks - 1 - place.block;  // those with most keys first
  long long head = place.head, b = head / args.heads;
  int h = static_cast<int>(head % args.heads), group = h / (args.heads / args.groups);
  int first = block * kQueries, row = first + static_cast<int>(threadIdx.x) / 32 * kWarpRows;
  int length = length_of(args, b, h);
  int end = args.causal ? min(length, first + kQueries) : length;
  int tiles = (end + kKeys - 1) / kKeys;
  HeadMask<float> mask(args, b, h, length);
  float log2_scale = static_cast<float>(args.scale) * kLog2E;
  float scale = kGeneral ? 1.0f : log2_scale;  // what is left to do in exp2
  AttentionDropoutWords dropout = dropout_of(args);

  auto load = [&](int tile) {
    int at = tile % 2 * kTile, j = tile * kKeys;
    load_tile<T, D, kKeys>(keys + at, args.key, b, group, j, length);
    load_tile<T, D, kKeys>(values + at, args.value, b, group, j, length);
  };
  float out[kWarpTiles][D / 8][4] = {};
  RunningRows<kWarpTiles> rows = {};
#pragma unroll
  for (int m = 0; m < kWarpTiles; ++m) {
    rows.greatest[m][0] = rows.greatest[m][1] = -m::infinity<float>();
  }
  load_tile<T, D, kQueries>(query, args.query, b, h, first, args.queries);
  if (tiles > 0) load(0);
  for (int tile = 0; tile < tiles; ++tile) {
    wait_for_copies();
    __syncthreads();  // the tile is there, and the one before is done with
    if (tile + 1 < tiles) load(tile + 1);
    int j = tile * kKeys, at = tile % 2 * kTile;
    if (args.causal && j >= row + kWarpRows) continue;
    float s[kWarpTiles][kKeys / 8][4];
    multiply_tiles<E, D>(s, query, row - first, keys + at);
    bool inside = j + kKeys <= length && (!args.causal || j + kKeys - 1 <= row);
    if (kGeneral || !inside) mask_scores<kGeneral>(s, mask, row, j, args.queries, log2_scale);
    weigh<D>(s, rows, out, scale);
    if (kGeneral && args.dropout_ratio > 0) drop(s, dropout, head, row, j);
    add_product<E, D>(out, s, values + at);
  }
  // What was never waited for is the query's tile, where there are no keys.
  wait_for_copies();
  __syncthreads();

  float kept = static_cast<float>(1 / (1 - args.dropout_ratio));
  int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int m = 0; m < kWarpTiles; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float total = sum_of_row(rows.total[m][half]);
      float inverse = total == 0.0f ? 0.0f : kept / total;
#pragma unroll
      for (int n = 0; n < D / 8; ++n) {
        out[m][n][half * 2] *= inverse;
        out[m][n][half * 2 + 1] *= inverse;
      }
      int i = row + m * 16 + half * 8 + lane / 4;
      if (lane % 4 != 0 || i >= args.queries) continue;
      float lse = total == 0.0f ? m::infinity<float>()
                                : fmaf(rows.greatest[m][half], scale, log2f(total)) * kLn2;
      reinterpret_cast<float*>(args.lse)[head * args.queries + i] = lse;
    }
  }
  store_tile<E, D>(out, query, row - first, args.out, b, h, row, args.queries);
#else
  __trap();
#endif
}

template <class E, int D, bool kGeneral>
void launch_forward(const LaunchContext& context, AttentionArgs args) {
  using Sizes = ForwardTiles<E>;
  constexpr int kBytes =
      (Sizes::kQueries + 4 * Sizes::kKeys) * D * static_cast<int>(sizeof(Stored<E>));
  std::int64_t blocks = (args.queries + Sizes::kQueries - 1) / Sizes::kQueries;
  std::int64_t heads = args.batch * args.heads;
  args.heads_at_once = heads_at_once(args, heads, args.keys);
  launch_with_memory(args.operation, context, attention_forward<E, D, kGeneral>, heads * blocks,
                     kTileBlock, kBytes, args);
}

}  // namespace rensa::cuda

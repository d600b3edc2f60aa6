// The gradients of attention on tensor cores. One kernel goes over the queries for each tile of
// keys, with the matrix of scores transposed, one over the keys for each tile of queries: each
// gradient is summed by one warp in one order.
#pragma once

#include "rensa/functions/operations/attention/cuda_tensor_cores.cuh"

namespace rensa::cuda {

// A warp has kTiles times 16 rows of its block, which meets tiles of kColumns rows: as many as the
// registers hold the sums of.
template <class E, int D> struct OfKeys {
  static constexpr int kTiles = is_16bit<E> && D <= 64 ? 2 : 1;
  static constexpr int kColumns = is_16bit<E> ? 64 / kTiles : 32 * 64 / (D < 64 ? 64 : D);
};
template <class E, int D> struct OfQueries {
  static constexpr int kTiles = is_16bit<E> ? 2 : 1;
  static constexpr int kColumns = (is_16bit<E> ? 64 : 32) * 64 / (D < 64 ? 64 : D);
};
template <class Part> inline constexpr int kRowsOf = 16 * kTileWarps* Part::kTiles;

#if RENSA_HAS_TENSOR_CORES

/// A thread's part of a warp's rows.
template <int kTiles, int kWidth> using Accumulator = float[kTiles][kWidth / 8][4];

/// The places of a thread's elements among a warp's rows and columns.
__device__ __forceinline__ int row_of_element(int m, int k) {
  return m * 16 + static_cast<int>(threadIdx.x) % 32 / 4 + k / 2 * 8;
}
__device__ __forceinline__ int column_of_element(int n, int k) {
  return n * 8 + static_cast<int>(threadIdx.x) % 4 * 2 + k % 2;
}

struct ScorePlace {
  int i, j;
  float lse, delta;
};

/// Makes the weights negative that dropout takes away.
template <bool kTransposed, int kTiles, int kChunks, class At>
__device__ __forceinline__ void drop_again(float (&s)[kTiles][kChunks][4],
                                           const AttentionDropoutWords& dropout, long long head,
                                           const At& at) {
#pragma unroll
  for (int m = 0; m < kTiles; ++m) {
#pragma unroll
    for (int n = 0; n < kChunks; n += 2) {
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        ScorePlace place = at(m, n, k);
        PhiloxWords words = dropout.words(head, place.i, place.j);
#pragma unroll
        for (int right = 0; right < 2; ++right) {
#pragma unroll
          for (int low = 0; low < 2; ++low) {
            int word = kTransposed ? right * 2 + low : low * 2 + right;
            float& weight = s[m][n + right][k + low * 2];
            if (!dropout.keeps(words.word[word])) weight = -weight;
          }
        }
      }
    }
  }
}

/// From products of queries and keys to weights; those that dropout takes away are negative. `at`
/// gives the place of element (m, n, k), with the logarithm of its row's sum times log2(e).
template <bool kGeneral, bool kTransposed, int kTiles, int kChunks, class At>
__device__ __forceinline__ void weigh_again(float (&s)[kTiles][kChunks][4],
                                            const AttentionArgs& args, const HeadMask<float>& mask,
                                            float log2_scale, bool inside,
                                            const AttentionDropoutWords& dropout, long long head,
                                            const At& at) {
  auto each = [&](auto&& f) {
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
#pragma unroll
      for (int n = 0; n < kChunks; ++n) {
#pragma unroll
        for (int k = 0; k < 4; ++k) f(s[m][n][k], at(m, n, k));
      }
    }
  };
  if constexpr (kGeneral) {
    each([&](float& x, const ScorePlace& place) {
      x = mask.apply(x * log2_scale, place.i, place.j, args.queries, kLog2E);
      x = exp2_of(x - place.lse);
    });
    if (args.dropout_ratio > 0) drop_again<kTransposed>(s, dropout, head, at);
  } else {
    if (!inside) {
      each([&](float& x, const ScorePlace& place) {
        if (mask.hides(place.i, place.j)) x = -m::infinity<float>();
      });
    }
    each([&](float& x, const ScorePlace& place) { x = exp2_of(fmaf(x, log2_scale, -place.lse)); });
  }
}

/// dp from gradients of weights `s` (see weigh_again) to those of scores.
template <bool kGeneral, int kTiles, int kChunks, class At>
__device__ __forceinline__ void differentiate(const float (&s)[kTiles][kChunks][4],
                                              float (&dp)[kTiles][kChunks][4], float factor,
                                              const At& at) {
#pragma unroll
  for (int m = 0; m < kTiles; ++m) {
#pragma unroll
    for (int n = 0; n < kChunks; ++n) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        float weight = s[m][n][k], gradient = dp[m][n][k];
        if constexpr (kGeneral) {
          gradient = signbit(weight) ? 0.0f : gradient * factor;
          weight = fabsf(weight);
        }
        dp[m][n][k] = weight * (gradient - at(m, n, k).delta);
      }
    }
  }
}

/// Weights as dropout leaves them, without their factor.
template <int kTiles, int kChunks>
__device__ __forceinline__ void leave_kept(float (&s)[kTiles][kChunks][4]) {
#pragma unroll
  for (int m = 0; m < kTiles; ++m) {
#pragma unroll
    for (int n = 0; n < kChunks; ++n) {
#pragma unroll
      for (int k = 0; k < 4; ++k) s[m][n][k] = s[m][n][k] < 0.0f ? 0.0f : s[m][n][k];
    }
  }
}

template <int kTiles, int kChunks>
__device__ __forceinline__ void scale_all(float (&c)[kTiles][kChunks][4], float by) {
#pragma unroll
  for (int m = 0; m < kTiles; ++m) {
#pragma unroll
    for (int n = 0; n < kChunks; ++n) {
#pragma unroll
      for (int k = 0; k < 4; ++k) c[m][n][k] *= by;
    }
  }
}

#endif

template <class E, int D, bool kGeneral>
__global__ void __launch_bounds__(kTileBlock, 2)
    attention_grad_of_keys(const __grid_constant__ AttentionArgs args) {
  wait_for_previous();
#if RENSA_HAS_TENSOR_CORES
  extern __shared__ uint4 attention_tiles[];
  using T = Stored<E>;
  using Part = OfKeys<E, D>;
  constexpr int kColumns = Part::kColumns, kRows = kRowsOf<Part>, kTile = kColumns * D;
  T* key = reinterpret_cast<T*>(attention_tiles);
  T* value = key + kRows * D;
  T* queries = value + kRows * D;
  T* gouts = queries + 2 * kTile;
  auto* numbers = reinterpret_cast<float2*>(gouts + 2 * kTile);  // of each query lse and delta
  int blocks = (args.keys + kRows - 1) / kRows;
  BlockPlace of_block(args, args.batch * args.groups, blocks);  // those with most queries first
  int block = of_block.block;
  long long outer = of_block.head, b = outer / args.groups;
  int group = static_cast<int>(outer % args.groups), each = args.heads / args.groups;
  int first = block * kRows, warp_row = static_cast<int>(threadIdx.x) / 32 * 16 * Part::kTiles;
  float log2_scale = static_cast<float>(args.scale) * kLog2E;
  float factor = static_cast<float>(1 / (1 - args.dropout_ratio));
  AttentionDropoutWords dropout = dropout_of(args);

  // Of keys that none of the heads sees the memory may hold anything.
  int longest = 0;
  for (int h = group * each; h < (group + 1) * each; ++h) {
    longest = max(longest, length_of(args, b, h));
  }
  // Tiles of queries of all the group's heads, one after the other; the first ones see none of
  // these keys where `causal`.
  int start = args.causal ? first / kColumns * kColumns : 0;
  struct Tiles {
    int h, i;
    __device__ void go_on(int from, int queries) {
      i += kColumns;
      if (i >= queries) ++h, i = from;
    }
  };
  Tiles here = {group * each, start}, ahead = here;
  int end = start < args.queries && first < longest ? (group + 1) * each : here.h;
  auto load = [&](int half) {
    load_tile<T, D, kColumns>(queries + half * kTile, args.query, b, ahead.h, ahead.i,
                              args.queries);
    load_tile<T, D, kColumns>(gouts + half * kTile, args.gout, b, ahead.h, ahead.i, args.queries);
    int thread = static_cast<int>(threadIdx.x), i = ahead.i + thread;
    if (thread < kColumns) {
      long long place = (b * args.heads + ahead.h) * args.queries + i;
      bool there = i < args.queries;
      float lse = there ? reinterpret_cast<const float*>(args.lse)[place] : m::infinity<float>();
      float delta = there ? reinterpret_cast<const float*>(args.delta)[place] : 0.0f;
      numbers[half * kColumns + thread] = make_float2(lse * kLog2E, delta);
    }
    ahead.go_on(start, args.queries);
  };
  Accumulator<Part::kTiles, D> gkey = {}, gvalue = {};
  load_tile<T, D, kRows>(key, args.key, b, group, first, longest);
  load_tile<T, D, kRows>(value, args.value, b, group, first, longest);
  if (here.h < end) load(0);
  for (int half = 0; here.h < end; half ^= 1, here.go_on(start, args.queries)) {
    wait_for_copies();
    __syncthreads();  // the tile is there, and the one before is done with
    if (ahead.h < end) load(half ^ 1);
    int h = here.h, i = here.i, at = half * kTile, row = first + warp_row;
    HeadMask<float> mask(args, b, h, length_of(args, b, h));
    if (mask.length <= first || (args.causal && i + kColumns <= row)) continue;
    const float2* of_tile = numbers + half * kColumns;
    auto element = [&](int m, int n, int k) {
      int column = column_of_element(n, k);
      float2 number = of_tile[column];
      return ScorePlace{i + column, row + row_of_element(m, k), number.x, number.y};
    };
    Accumulator<Part::kTiles, kColumns> s, dp;
    multiply_tiles<E, D>(s, key, warp_row, queries + at);
    multiply_tiles<E, D>(dp, value, warp_row, gouts + at);
    bool inside =
        first + kRows <= mask.length && (!args.causal || i >= row + 16 * Part::kTiles - 1);
    weigh_again<kGeneral, true>(s, args, mask, log2_scale, inside, dropout, b * args.heads + h,
                                element);
    differentiate<kGeneral>(s, dp, factor, element);
    if constexpr (kGeneral) leave_kept(s);
    add_product<E, D>(gvalue, s, gouts + at);
    add_product<E, D>(gkey, dp, queries + at);
  }
  wait_for_copies();
  __syncthreads();
  scale_all(gkey, static_cast<float>(args.scale));
  scale_all(gvalue, factor);
  int row = first + warp_row;
  if (args.gkey.data != nullptr) {
    store_tile<E, D>(gkey, key, warp_row, args.gkey, b, group, row, args.keys);
  }
  if (args.gvalue.data != nullptr) {
    store_tile<E, D>(gvalue, value, warp_row, args.gvalue, b, group, row, args.keys);
  }
#else
  __trap();
#endif
}

template <class E, int D, bool kGeneral>
__global__ void __launch_bounds__(kTileBlock, 2)
    attention_grad_of_queries(const __grid_constant__ AttentionArgs args) {
  wait_for_previous();
#if RENSA_HAS_TENSOR_CORES
  extern __shared__ uint4 attention_tiles[];
  using T = Stored<E>;
  using Part = OfQueries<E, D>;
  constexpr int kColumns = Part::kColumns, kRows = kRowsOf<Part>, kTile = kColumns * D;
  T* query = reinterpret_cast<T*>(attention_tiles);
  T* gout = query + kRows * D;
  T* keys = gout + kRows * D;
  T* values = keys + 2 * kTile;
  int blocks = (args.queries + kRows - 1) / kRows;
  BlockPlace of_block(args, args.batch * args.heads, blocks);
  int block = blocks - 1 - of_block.block;  // those with most keys first
  long long head = of_block.head, b = head / args.heads;
  int h = static_cast<int>(head % args.heads), group = h / (args.heads / args.groups);
  int first = block * kRows, warp_row = static_cast<int>(threadIdx.x) / 32 * 16 * Part::kTiles;
  int length = length_of(args, b, h);
  int end = args.causal ? min(length, first + kRows) : length;
  int tiles = (end + kColumns - 1) / kColumns;
  HeadMask<float> mask(args, b, h, length);
  float log2_scale = static_cast<float>(args.scale) * kLog2E;
  float factor = static_cast<float>(1 / (1 - args.dropout_ratio));
  AttentionDropoutWords dropout = dropout_of(args);
  float lse[Part::kTiles][2], delta[Part::kTiles][2];
#pragma unroll
  for (int m = 0; m < Part::kTiles; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int i = first + warp_row + row_of_element(m, half * 2);
      bool there = i < args.queries;
      long long place = head * args.queries + i;
      lse[m][half] = there ? reinterpret_cast<const float*>(args.lse)[place] * kLog2E
                           : ::rensa::m::infinity<float>();
      delta[m][half] = there ? reinterpret_cast<const float*>(args.delta)[place] : 0.0f;
    }
  }

  auto load = [&](int tile) {
    int at = tile % 2 * kTile, j = tile * kColumns;
    load_tile<T, D, kColumns>(keys + at, args.key, b, group, j, length);
    load_tile<T, D, kColumns>(values + at, args.value, b, group, j, length);
  };
  Accumulator<Part::kTiles, D> gquery = {};
  load_tile<T, D, kRows>(query, args.query, b, h, first, args.queries);
  load_tile<T, D, kRows>(gout, args.gout, b, h, first, args.queries);
  if (tiles > 0) load(0);
  for (int tile = 0; tile < tiles; ++tile) {
    wait_for_copies();
    __syncthreads();  // the tile is there, and the one before is done with
    if (tile + 1 < tiles) load(tile + 1);
    int j = tile * kColumns, at = tile % 2 * kTile, row = first + warp_row;
    if (args.causal && j >= row + 16 * Part::kTiles) continue;
    auto element = [&](int m, int n, int k) {
      return ScorePlace{first + warp_row + row_of_element(m, k), j + column_of_element(n, k),
                        lse[m][k / 2], delta[m][k / 2]};
    };
    Accumulator<Part::kTiles, kColumns> s, dp;
    multiply_tiles<E, D>(s, query, warp_row, keys + at);
    multiply_tiles<E, D>(dp, gout, warp_row, values + at);
    bool inside = j + kColumns <= length && (!args.causal || j + kColumns - 1 <= row);
    weigh_again<kGeneral, false>(s, args, mask, log2_scale, inside, dropout, head, element);
    differentiate<kGeneral>(s, dp, factor, element);
    add_product<E, D>(gquery, dp, keys + at);
  }
  wait_for_copies();
  __syncthreads();
  scale_all(gquery, static_cast<float>(args.scale));
  store_tile<E, D>(gquery, query, warp_row, args.gquery, b, h, first + warp_row, args.queries);
#else
  __trap();
#endif
}

/// Of shared memory: two tiles of a block's rows and two of each that it meets.
template <class E, class Part, int D>
inline constexpr int kBytesOf =
    (2 * kRowsOf<Part> + 4 * Part::kColumns) * D* static_cast<int>(sizeof(Stored<E>));

template <class Part> std::int64_t blocks_of(std::int64_t heads, int rows) {
  return heads * ((rows + kRowsOf<Part> - 1) / kRowsOf<Part>);
}

template <class E, int D, bool kGeneral>
void launch_of_keys(const LaunchContext& context, AttentionArgs args) {
  using Part = OfKeys<E, D>;
  std::int64_t heads = args.batch * args.groups;
  args.heads_at_once = heads_at_once(args, heads, args.queries);
  constexpr int kNumbers = 2 * Part::kColumns * static_cast<int>(sizeof(float2));
  launch_with_memory(args.operation, context, attention_grad_of_keys<E, D, kGeneral>,
                     blocks_of<Part>(heads, args.keys), kTileBlock, kBytesOf<E, Part, D> + kNumbers,
                     args);
}

template <class E, int D, bool kGeneral>
void launch_backward(const LaunchContext& context, AttentionArgs args) {
  if (args.gkey.data != nullptr || args.gvalue.data != nullptr) {
    launch_of_keys<E, D, kGeneral>(context, args);
  }
  if (args.gquery.data == nullptr) return;
  using Part = OfQueries<E, D>;
  std::int64_t heads = args.batch * args.heads;
  args.heads_at_once = heads_at_once(args, heads, args.keys);
  launch_with_memory(args.operation, context, attention_grad_of_queries<E, D, kGeneral>,
                     blocks_of<Part>(heads, args.queries), kTileBlock, kBytesOf<E, Part, D>, args);
}

}  // namespace rensa::cuda

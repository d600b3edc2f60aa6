// Products on tensor cores (mma.sync, Ampere and later), from tiles in shared memory that are
// filled while the tile before is worked on.
#pragma once

#include "rensa/backend/cuda/tensor_cores.cuh"
#include "rensa/functions/operations/attention/cuda_masks.cuh"

namespace rensa::cuda {

inline constexpr int kTileWarps = 4;
inline constexpr int kTileBlock = 32 * kTileWarps;

/// Rows of D elements in shared memory. Chunks of 16 bytes change places by their row, so that the
/// same chunk of eight rows lies in different banks.
template <class T, int D> struct Tile {
  static constexpr int kChunk = 16 / static_cast<int>(sizeof(T)), kChunks = D / kChunk;
  static_assert(kChunks % 4 == 0);
  static __device__ __forceinline__ int offset(int row, int chunk) {
    int turn = kChunks % 8 == 0 ? row & 7 : row >> 1 & 3;
    return row * D + (chunk ^ turn) * kChunk;
  }
};

#if RENSA_HAS_TENSOR_CORES

/// The first kRows rows from `row` on of a head into a tile, zeros beyond `rows` and the width.
template <class T, int D, int kRows>
__device__ __forceinline__ void load_tile(T* tile, const HeadRows& from, long long b, int h,
                                          int row, int rows) {
  using Place = Tile<T, D>;
  // A thread has one chunk of every kStep-th row.
  constexpr int kChunk = Place::kChunk, kStep = kTileBlock / Place::kChunks;
  static_assert(kTileBlock % Place::kChunks == 0 && kRows % kStep == 0);
  int r = static_cast<int>(threadIdx.x) / Place::kChunks;
  int chunk = static_cast<int>(threadIdx.x) % Place::kChunks, left = from.width - chunk * kChunk;
  const T* p = row_of<const T>(from, b, h, row + r) + chunk * kChunk;
  long long step = kStep * from.row;
  if (from.vector) {
#pragma unroll
    for (int c = 0; c < kRows; c += kStep) {
      copy_chunk(tile + Place::offset(r + c, chunk), p, left > 0 && row + r + c < rows);
      p += step;
    }
    return;
  }
#pragma unroll
  for (int c = 0; c < kRows; c += kStep) {
    Pack<T, kChunk> pack;
    bool there = row + r + c < rows;
#pragma unroll
    for (int j = 0; j < kChunk; ++j) pack.value[j] = there && j < left ? p[j] : T(0.0f);
    *reinterpret_cast<Pack<T, kChunk>*>(tile + Place::offset(r + c, chunk)) = pack;
    p += step;
  }
}

/// Two values as 16-bit elements next to each other.
template <class T> __device__ __forceinline__ unsigned packed(float first, float second) {
  unsigned both;
  if constexpr (std::is_same_v<T, half_t>) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
  } else {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
  }
  return both;
}

/// c[m][n] and c[m][n + 1] += rows[m] @ columns, whose words are of both, for each m.
template <class E, int kRows, int kColumns>
__device__ __forceinline__ void multiply_columns(float (&c)[kRows][kColumns][4], int n,
                                                 const OperandWords<E> (&rows)[kRows],
                                                 const OperandWords<E>& columns) {
  for_each_product<E>([&]<int N>() {
#pragma unroll
    for (int m = 0; m < kRows; ++m) {
      multiply<E, N>(c[m][n], rows[m], columns, 0);
      multiply<E, N>(c[m][n + 1], rows[m], columns, 1);
    }
  });
}

/// c (16 * kRows, 8 * kColumns) = a @ b^T: rows of a from `a_row` on and rows of b from 0 on of
/// tiles of D columns.
template <class E, int D, int kRows, int kColumns>
__device__ __forceinline__ void multiply_tiles(float (&c)[kRows][kColumns][4], const Stored<E>* a,
                                               int a_row, const Stored<E>* b) {
  using Place = Tile<Stored<E>, D>;
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int m = 0; m < kRows; ++m) {
#pragma unroll
    for (int n = 0; n < kColumns; ++n) {
#pragma unroll
      for (int k = 0; k < 4; ++k) c[m][n][k] = 0;
    }
  }
#pragma unroll
  for (int chunk = 0; chunk < Place::kChunks; chunk += 2) {
    unsigned stored[4];
    OperandWords<E> rows[kRows], columns;
#pragma unroll
    for (int m = 0; m < kRows; ++m) {
      load_matrices(stored, a + Place::offset(a_row + m * 16 + lane % 16, chunk + lane / 16));
      rows[m].set(stored);
    }
#pragma unroll
    for (int n = 0; n < kColumns; n += 2) {
      load_matrices(stored,
                    b + Place::offset(n * 8 + lane % 8 + lane / 16 * 8, chunk + lane / 8 % 2));
      columns.set(stored);
      multiply_columns(c, n, rows, columns);
    }
  }
}

/// c (16 * kRows, D) += a (16 * kRows, 8 * kDepth) @ b: a as what multiply_tiles gives, rounded to
/// E; b the first 8 * kDepth rows of a tile.
template <class E, int D, int kRows, int kDepth>
__device__ __forceinline__ void add_product(float (&c)[kRows][D / 8][4],
                                            const float (&a)[kRows][kDepth][4],
                                            const Stored<E>* b) {
  using T = Stored<E>;
  using Place = Tile<T, D>;
  int lane = threadIdx.x % 32;
  if constexpr (is_16bit<E>) {
#pragma unroll
    for (int k = 0; k < kDepth; k += 2) {
      OperandWords<E> rows[kRows], columns;
#pragma unroll
      for (int m = 0; m < kRows; ++m) {
        const float(&left)[4] = a[m][k];
        const float(&right)[4] = a[m][k + 1];
        rows[m].part[0][0] = packed<T>(left[0], left[1]);
        rows[m].part[0][1] = packed<T>(left[2], left[3]);
        rows[m].part[0][2] = packed<T>(right[0], right[1]);
        rows[m].part[0][3] = packed<T>(right[2], right[3]);
      }
#pragma unroll
      for (int n = 0; n < D / 8; n += 2) {
        load_transposed(columns.part[0], b + Place::offset(k * 8 + lane % 16, n + lane / 16));
        multiply_columns(c, n, rows, columns);
      }
    }
  } else {
    // The order of the eight terms is free: words t and t + 4 are columns 2t and 2t + 1 of a, which
    // the thread has, and those rows of b.
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      OperandWords<E> rows[kRows], columns;
#pragma unroll
      for (int m = 0; m < kRows; ++m) {
        unsigned words[4] = {__float_as_uint(a[m][k][0]), __float_as_uint(a[m][k][2]),
                             __float_as_uint(a[m][k][1]), __float_as_uint(a[m][k][3])};
        rows[m].set(words);
      }
#pragma unroll
      for (int n = 0; n < D / 8; n += 2) {
        unsigned words[4];
#pragma unroll
        for (int w = 0; w < 4; ++w) {
          int row = k * 8 + lane % 4 * 2 + w % 2, column = (n + w / 2) * 8 + lane / 4;
          words[w] = __float_as_uint(b[Place::offset(row, column / 4) + column % 4]);
        }
        columns.set(words);
        multiply_columns(c, n, rows, columns);
      }
    }
  }
}

/// Stores a warp's rows, `row` of the head the first of them, through rows `tile_row` and on of a
/// tile, which nobody else needs.
template <class E, int D, int kRows>
__device__ __forceinline__ void store_tile(const float (&c)[kRows][D / 8][4], Stored<E>* tile,
                                           int tile_row, const HeadRows& to, long long b, int h,
                                           int row, int rows) {
  using T = Stored<E>;
  using Place = Tile<T, D>;
  constexpr int kChunk = Place::kChunk, kChunks = Place::kChunks;
  int lane = threadIdx.x % 32;
  __syncwarp();
#pragma unroll
  for (int m = 0; m < kRows; ++m) {
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        int column = n * 8 + lane % 4 * 2;
        T* place = tile + Place::offset(tile_row + m * 16 + half * 8 + lane / 4, column / kChunk) +
                   column % kChunk;
        float first = c[m][n][half * 2], second = c[m][n][half * 2 + 1];
        if constexpr (is_16bit<E>) {
          *reinterpret_cast<unsigned*>(place) = packed<T>(first, second);
        } else {
          *reinterpret_cast<float2*>(place) = make_float2(first, second);
        }
      }
    }
  }
  __syncwarp();
#pragma unroll
  for (int k = 0; k < kRows * 16 * kChunks / 32; ++k) {
    int place = lane + k * 32;
    int r = place / kChunks, chunk = place % kChunks;
    int left = row + r < rows ? to.width - chunk * kChunk : 0;
    if (left <= 0) continue;
    auto pack =
        *reinterpret_cast<const Pack<T, kChunk>*>(tile + Place::offset(tile_row + r, chunk));
    store_pack<T, kChunk>(row_of<T>(to, b, h, row + r) + chunk * kChunk, pack, left, to.vector);
  }
}

#endif

/// 2^x, of -inf 0.
__device__ __forceinline__ float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

inline constexpr float kLog2E = 1.4426950408889634f, kLn2 = 0.6931471805599453f;

/// Whether scores take more than a product with a positive scale and a bound of keys.
inline bool is_general(const AttentionArgs& args) {
  return args.mask != nullptr || args.slopes != nullptr || args.dropout_ratio > 0 ||
         !(args.scale > 0);
}

/// Calls f.template operator()<D, general>() for what the operation has, D at least kLeast.
template <int kLeast, class F> void dispatch_widths(const AttentionArgs& args, const F& f) {
  int width = args.query.width > args.value.width ? args.query.width : args.value.width;
  auto with_width = [&]<int D>() {
    if (is_general(args)) f.template operator()<D, true>();
    else f.template operator()<D, false>();
  };
  if constexpr (kLeast <= 32) {
    if (width <= 32) return with_width.template operator()<32>();
  }
  if (width <= 64) with_width.template operator()<64>();
  else with_width.template operator()<128>();
}

}  // namespace rensa::cuda

// What the kernels of all tiles share beside their sums: how a tile of c is stored, and how blocks
// are launched for all tiles, by the kernel for the operands' layout.
#pragma once

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/backend/cuda/tensor_cores.cuh"
#include "rensa/core/update_functors.h"
#include "rensa/operations/matmul/cuda_kernels.h"
#include "rensa/operations/matmul/cuda_tiles.h"

namespace rensa::cuda {

/// One sum, by fused multiply-adds: for what tensor cores make NaN of.
static __device__ __noinline__ float plain_sum(const TileArgs& p, int row, int column) {
  const float* a = static_cast<const float*>(p.a) + blockIdx.z * p.a_batch;
  const float* b = static_cast<const float*>(p.b) + blockIdx.z * p.b_batch;
  a += row * (p.a_along_k ? p.a_ld : 1);
  b += column * (p.b_along_k ? p.b_ld : 1);
  std::int64_t a_step = p.a_along_k ? 1 : p.a_ld, b_step = p.b_along_k ? 1 : p.b_ld;
  float sum = 0.0f;
#pragma unroll 1
  for (int k = 0; k < p.k; ++k) sum = fmaf(a[k * a_step], b[k * b_step], sum);
  return sum;
}

/// Where a block's tile begins in c, and the first row and column of the tile that the block
/// stores; other blocks store those before them.
struct TilePlace {
  int row0, column0, first_row = 0, first_column = 0;

  /// Whether the block stores row `row` of the tile, or column `column`; m and n are c's.
  __device__ __forceinline__ bool has_row(int row, int m) const {
    return row >= first_row && row0 + row < m;
  }
  __device__ __forceinline__ bool has_column(int column, int n) const {
    return column >= first_column && column0 + column < n;
  }
};

/// Whether kWidth columns of floats can be read or written at once where c lies, or what lies as c
/// does.
template <int kWidth>
__device__ __forceinline__ bool has_packs(const TileArgs& p, const void* data) {
  return p.n % kWidth == 0 && p.c_ld % kWidth == 0 && p.c_batch % kWidth == 0 &&
         reinterpret_cast<std::uintptr_t>(data) % sizeof(Pack<float, kWidth>) == 0;
}

/// A bit for each of a thread's 32 sums of floats whose gate is closed; row_of(i) and column_of(i)
/// say where sum i is in the tile, kWidth of them at a time lie together. All of the gate is on its
/// way at once, for which what c has not is read as its last row and column.
template <int kWidth, class Row, class Column>
__device__ __forceinline__ unsigned closed_gates(const TileArgs& p, const TilePlace& tile,
                                                 Row&& row_of, Column&& column_of) {
  unsigned closed = 0;
#pragma unroll
  for (int i = 0; i < 32; i += kWidth) {
    int row = min(tile.row0 + row_of(i), p.m - 1),
        column = min(tile.column0 + column_of(i), p.n - kWidth);
    std::int64_t at = blockIdx.z * p.c_batch + row * p.c_ld + column;
    auto gate =
        *reinterpret_cast<const Pack<float, kWidth>*>(static_cast<const float*>(p.gate) + at);
#pragma unroll
    for (int e = 0; e < kWidth; ++e) {
      if (!is_open(gate.value, e)) closed |= 1u << (i + e);
    }
  }
  return closed;
}

/// The rate of an update: what the work before has written where a replay asks it anew.
__device__ __forceinline__ float rate_of(const SgdUpdate& update) {
  return static_cast<float>(update.replay_lr ? *update.replay_lr : update.lr);
}

/// SGD's update with kSums floats that a thread has stored, where there is one (TileArgs::update).
/// row_of(i) and column_of(i) say where sum i, which is sum_of(i), is in the tile; four at a time
/// lie together. All of the parameter is on its way at once, of which what c has not is read as its
/// last row and columns.
template <int kSums, class Row, class Column, class Sum>
__device__ __forceinline__ void update_parameter(const TileArgs& p, const TilePlace& tile,
                                                 Row&& row_of, Column&& column_of, Sum&& sum_of) {
  using Four = Pack<float, 4>;
  if (!p.update.parameter) return;
  auto at = [&](int row, int column) {
    return reinterpret_cast<Four*>(p.update.parameter + row * p.c_ld + column);
  };
  float lr = rate_of(p.update);
  Four parameter[kSums / 4];
#pragma unroll
  for (int i = 0; i < kSums; i += 4) {
    int row = min(tile.row0 + row_of(i), p.m - 1);
    parameter[i / 4] = *at(row, min(tile.column0 + column_of(i), p.n - 4));
  }
  update::sgd<float> rule{lr};
#pragma unroll
  for (int i = 0; i < kSums; i += 4) {
    if (!tile.has_row(row_of(i), p.m) || !tile.has_column(column_of(i), p.n)) continue;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      float gradient = sum_of(i + e);
      rule.apply(parameter[i / 4].value[e], gradient);
    }
    *at(tile.row0 + row_of(i), tile.column0 + column_of(i)) = parameter[i / 4];
  }
}

/// The elements of c that a thread stores, all in one column of a tile, and what its sums meet
/// there, which is loaded before any is added up. E is what was multiplied.
template <class E, int kRows, int kColumns> struct TileEnds {
  using T = Stored<E>;
  int first_row, row_step, rows;  // of the tile; rows is 0 or less where c has none of it
  int row0, column;               // of c
  std::int64_t first;             // where row 0 lies in c, and in the gate
  float bias = 0.0f;
  unsigned closed = 0;  // a bit for each element, the next one's the lowest
  static_assert(kRows * kColumns <= 32 * 32);

  /// Of thread `thread` of `threads` that store the tile.
  __device__ __forceinline__ TileEnds(const TileArgs& p, const TilePlace& place, int thread,
                                      int threads) {
    row0 = place.row0;
    column = place.column0 + thread % kColumns;
    first_row = place.first_row + thread / kColumns;
    row_step = threads / kColumns;
    rows = place.has_column(thread % kColumns, p.n) ? min(kRows, p.m - row0) : 0;
    first = blockIdx.z * p.c_batch + row0 * p.c_ld + column;
    if (first_row >= rows) return;
    bias = bias_of(static_cast<const T*>(p.bias), column);
    if (!p.gate) return;
    unsigned bit = 1;
#pragma unroll 4
    for (int row = first_row; row < rows; row += row_step, bit += bit) {
      if (!is_open(static_cast<const T*>(p.gate), first + row * p.c_ld)) closed |= bit;
    }
  }
  /// Rows in their order.
  __device__ __forceinline__ void store(const TileArgs& p, int row, float sum) {
    if constexpr (std::is_same_v<E, SplitFloat>) {
      if (!isfinite(sum)) sum = plain_sum(p, row0 + row, column);
    }
    T value = finish<T>(sum, p.alpha, bias, p.activation);
    static_cast<T*>(p.c)[first + row * p.c_ld] = closed & 1 ? T(0.0f) : value;
    closed >>= 1;
  }
  /// Adds up the sums of `warps` warps, of which each has rows of kStride, `bytes` behind those of
  /// the warp before, and stores them.
  template <int kStride>
  __device__ __forceinline__ void store_sums(const TileArgs& p, const char* sums, int bytes,
                                             int warps) {
#pragma unroll 1
    for (int row = first_row; row < rows; row += row_step) {
      int at = row * kStride + static_cast<int>(threadIdx.x) % kColumns;
      const char* from = sums + at * sizeof(float);
      float sum = 0.0f;
      for (int w = 0; w < warps; ++w) sum += *reinterpret_cast<const float*>(from + w * bytes);
      store(p, row, sum);
    }
  }
};

/// Calls launch.operator()<a lies along k, b lies along k>(). Both operands transposed are no form.
template <class F> void launch_by_layout(const TileArgs& args, F&& launch) {
  if (!args.a_along_k) launch.template operator()<false, false>();
  else if (args.b_along_k) launch.template operator()<true, true>();
  else launch.template operator()<true, false>();
}

/// A block of `warps` warps, with that much shared memory, for each tile of c.
template <class Args>
void launch_tiles(void (*kernel)(Args), const Args& args, int rows, int columns, int warps,
                  int bytes, const LaunchContext& context) {
  if (bytes > 48 << 10) {
    allow_shared_memory("matmul", context.device, reinterpret_cast<const void*>(kernel));
  }
  dim3 grid(static_cast<unsigned>(ceil_div(args.n, columns)),
            static_cast<unsigned>(ceil_div(args.m, rows)), static_cast<unsigned>(args.batch));
  launch_kernel("matmul", context, kernel, grid, 32 * warps, args, static_cast<std::size_t>(bytes));
}

}  // namespace rensa::cuda

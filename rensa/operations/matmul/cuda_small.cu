// Products of small matrices of float32. All of k, or a large part of it, is read at once: such a
// product takes as long as its loads take to come, so they come together.
#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/operations/matmul/cuda_kernels.h"
#include "rensa/operations/matmul/cuda_skinny.h"

namespace rensa::cuda {

namespace {

constexpr int kTile = 32;    // rows and columns of c that a block makes
constexpr int kDepth = 128;  // of k, in shared memory at a time
constexpr int kLoads = kTile * kDepth / kBlock;

/// The elements of a tile of x that a thread brings to shared memory: kTile lines of kDepth.
struct TileLoader {
  const float* x;
  std::int64_t line_stride, k_stride;
  int lines, k;  // of x, from the tile's first line on
  int line_step, k_step, line, depth;

  __device__ TileLoader(const float* x_, std::int64_t line_stride_, std::int64_t k_stride_,
                        int lines_, int k_)
      : x(x_), line_stride(line_stride_), k_stride(k_stride_), lines(lines_), k(k_) {
    bool along_k = k_stride == 1;  // neighbouring threads read what lies together
    line = static_cast<int>(along_k ? threadIdx.x / kDepth : threadIdx.x % kTile);
    depth = static_cast<int>(along_k ? threadIdx.x % kDepth : threadIdx.x / kTile);
    line_step = along_k ? kBlock / kDepth : 0;
    k_step = along_k ? 0 : kBlock / kTile;
  }
  __device__ __forceinline__ void load(int k0, float (&values)[kLoads]) const {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      int l = line + i * line_step, d = k0 + depth + i * k_step;
      values[i] = l < lines && d < k ? x[l * line_stride + d * k_stride] : 0.0f;
    }
  }
  __device__ __forceinline__ void store(float (*tile)[kTile + 2],
                                        const float (&values)[kLoads]) const {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) tile[depth + i * k_step][line + i * line_step] = values[i];
  }
};

__global__ void __launch_bounds__(kBlock) small_kernel(const __grid_constant__ ProductArgs p) {
  wait_for_previous();
  __shared__ alignas(8) float a_tile[kDepth][kTile + 2], b_tile[kDepth][kTile + 2];
  int row0 = static_cast<int>(blockIdx.y) * kTile, column0 = static_cast<int>(blockIdx.x) * kTile;
  TileLoader a(p.a + row0 * p.a_row, p.a_row, p.a_k, p.m - row0, p.k);
  TileLoader b(p.b + column0 * p.b_column, p.b_column, p.b_k, p.n - column0, p.k);
  int x = threadIdx.x % 16 * 2, y = threadIdx.x / 16 * 2;  // a thread makes 2 x 2
  float sum[2][2] = {};
  for (int k0 = 0; k0 < p.k; k0 += kDepth) {
    float a_values[kLoads], b_values[kLoads];
    a.load(k0, a_values);
    b.load(k0, b_values);
    if (k0 > 0) __syncthreads();
    a.store(a_tile, a_values);
    b.store(b_tile, b_values);
    __syncthreads();
    int depth = min(kDepth, p.k - k0);
#pragma unroll 8
    for (int d = 0; d < depth; ++d) {
      float2 u = *reinterpret_cast<const float2*>(&a_tile[d][y]);
      float2 v = *reinterpret_cast<const float2*>(&b_tile[d][x]);
      sum[0][0] = fmaf(u.x, v.x, sum[0][0]);
      sum[0][1] = fmaf(u.x, v.y, sum[0][1]);
      sum[1][0] = fmaf(u.y, v.x, sum[1][0]);
      sum[1][1] = fmaf(u.y, v.y, sum[1][1]);
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    int row = row0 + y + i / 2, column = column0 + x + i % 2;
    if (row >= p.m || column >= p.n) continue;
    p.c[row * p.c_ld + column] = finish(sum[i / 2][i % 2], p.alpha, p.bias != nullptr,
                                        p.bias ? p.bias[column] : 0.0f, p.activation);
  }
}

}  // namespace

void launch_small(const ProductArgs& args, const LaunchContext& context) {
  dim3 grid(static_cast<unsigned>(ceil_div(args.n, kTile)),
            static_cast<unsigned>(ceil_div(args.m, kTile)));
  launch_kernel("matmul", context, small_kernel, grid, kBlock, args);
}

}  // namespace rensa::cuda

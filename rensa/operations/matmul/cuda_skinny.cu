// The kernels of products with one short dimension. A short dimension is rounded up to S (or K), a
// multiple of four; what is added reads the last row again, or zeros, and is not stored.
#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/operations/matmul/cuda_kernels.h"
#include "rensa/operations/matmul/cuda_skinny.h"

namespace rensa::cuda {

namespace {

__device__ __forceinline__ float finish(float sum, float alpha, const float* bias, int column,
                                        operations::Activation activation) {
  return cuda::finish(sum, alpha, bias != nullptr, bias ? bias[column] : 0.0f, activation);
}

// --- dot: k is contiguous in x ---

constexpr int kMaxWarps = 8;

/// Sums each of N <= 32 values over groups of 2 * Mask lanes; a lane gets the sum of
/// v[lane / (2 * Mask / N)]. Lanes trade halves of their values, so N sums take about N shuffles
/// and not 5 N.
template <int N, int Mask = 16> __device__ __forceinline__ float reduce_transposed(float (&v)[N]) {
  if constexpr (Mask == 0) {
    return v[0];
  } else if constexpr (N == 1) {
    v[0] += shuffle_xor(v[0], Mask);
    return reduce_transposed<1, Mask / 2>(v);
  } else {
    constexpr int kHalf = N / 2;
    bool upper = threadIdx.x & Mask;
    float kept[kHalf];
#pragma unroll
    for (int i = 0; i < kHalf; ++i) {
      float give = upper ? v[i] : v[i + kHalf];
      kept[i] = (upper ? v[i + kHalf] : v[i]) + shuffle_xor(give, Mask);
    }
    return reduce_transposed<kHalf, Mask / 2>(kept);
  }
}

/// A block computes R rows of the long operand: its threads take every blockDim-th pack of W
/// elements along k.
template <int S, int R, int W>
__global__ void __launch_bounds__(kMaxWarps * 32, 2) dot_kernel(SkinnyArgs p) {
  wait_for_previous();
  constexpr int kPadded = S <= 4 ? 4 : S <= 8 ? 8 : 16;  // a power of two
  constexpr int kValues = R * kPadded, kGroup = kValues < 32 ? kValues : 32;
  __shared__ float partial[kMaxWarps][kValues];
  int row0 = blockIdx.x * R;
  float sum[R][S] = {};
  for (int i = threadIdx.x * W; i < p.k; i += blockDim.x * W) {
    Pack<float, W> x[R];
#pragma unroll
    for (int r = 0; r < R; ++r) {
      int row = min(row0 + r, p.length - 1);
      x[r] = *reinterpret_cast<const Pack<float, W>*>(p.x + row * p.x_ld + i);
    }
#pragma unroll
    for (int s = 0; s < S; ++s) {
      int row = min(s, p.count - 1);
      auto y = *reinterpret_cast<const Pack<float, W>*>(p.s + row * p.s_row + i * p.s_k);
#pragma unroll
      for (int r = 0; r < R; ++r) {
#pragma unroll
        for (int w = 0; w < W; ++w) sum[r][s] = fmaf(x[r].value[w], y.value[w], sum[r][s]);
      }
    }
  }
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
  for (int group = 0; group < kValues / kGroup; ++group) {
    float v[kGroup];
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      int r = (group * kGroup + i) / kPadded, s = (group * kGroup + i) % kPadded;
      v[i] = s < S ? sum[r][s < S ? s : 0] : 0.0f;
    }
    float total = reduce_transposed(v);
    constexpr int kLanes = 32 / kGroup;  // that hold the same sum
    if (lane % kLanes == 0) partial[warp][group * kGroup + lane / kLanes] = total;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kValues; i += blockDim.x) {
    int row = row0 + i / kPadded, s = i % kPadded;
    if (row >= p.length || s >= p.count) continue;
    float total = 0.0f;
    for (int w = 0; w < static_cast<int>(blockDim.x) / 32; ++w) total += partial[w][i];
    p.c[row * p.c_length + s * p.c_count] =
        finish(total, p.alpha, p.bias, p.bias_by_count ? s : row, p.activation);
  }
}

template <int S>
void launch_dot_of(const SkinnyArgs& args, bool vectors, const LaunchContext& context) {
  int packs = vectors ? args.k / 4 : args.k;
  int threads = packs > 128 ? 256 : packs > 64 ? 128 : 64;
  // Few rows: one per block, for as many blocks as there are; many: four share the short operand.
  constexpr int kFewRows = 256;
  bool few = args.length <= kFewRows;
  unsigned blocks = static_cast<unsigned>(few ? args.length : ceil_div(args.length, 4));
  auto kernel = few ? (vectors ? dot_kernel<S, 1, 4> : dot_kernel<S, 1, 1>)
                    : (vectors ? dot_kernel<S, 4, 4> : dot_kernel<S, 4, 1>);
  launch_kernel("matmul", context, kernel, blocks, threads, args);
}

// --- columns: the long dimension is contiguous in x ---

constexpr int kColumns = 32;  // of a block, one per lane
constexpr int kSlices = 16;   // of k, one per warp
constexpr int kDepth = 8;     // loads that a thread has in flight
constexpr int kChunk = kSlices * kDepth;

template <int S> __global__ void __launch_bounds__(kSlices * 32) columns_kernel(SkinnyArgs p) {
  wait_for_previous();
  __shared__ alignas(16) float tile[kChunk][S];  // of the short operand
  __shared__ float partial[kSlices][S][kColumns];
  int lane = threadIdx.x % 32, slice = threadIdx.x / 32;
  int column = min(static_cast<int>(blockIdx.x) * kColumns + lane, p.length - 1);
  float sum[S] = {};
  for (int k0 = 0; k0 < p.k; k0 += kChunk) {
    float x[kDepth];
#pragma unroll
    for (int j = 0; j < kDepth; ++j) {
      int k = k0 + slice + j * kSlices;
      x[j] = k < p.k ? p.x[k * p.x_ld + column] : 0.0f;
    }
    for (int i = threadIdx.x; i < kChunk * S; i += kSlices * 32) {
      // Neighbouring threads read along the short operand's contiguous side.
      int k = p.s_row == 1 ? i / S : i % kChunk, s = p.s_row == 1 ? i % S : i / kChunk;
      bool inside = s < p.count && k0 + k < p.k;
      tile[k][s] = inside ? p.s[s * p.s_row + (k0 + k) * p.s_k] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < kDepth; ++j) {
#pragma unroll
      for (int s = 0; s < S; s += 4) {
        auto y = *reinterpret_cast<const Pack<float, 4>*>(&tile[slice + j * kSlices][s]);
#pragma unroll
        for (int w = 0; w < 4; ++w) sum[s + w] = fmaf(x[j], y.value[w], sum[s + w]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int s = 0; s < S; ++s) partial[slice][s][lane] = sum[s];
  __syncthreads();
  for (int i = threadIdx.x; i < S * kColumns; i += kSlices * 32) {
    int s = i / kColumns, l = static_cast<int>(blockIdx.x) * kColumns + i % kColumns;
    if (s >= p.count || l >= p.length) continue;
    float total = 0.0f;
#pragma unroll
    for (int j = 0; j < kSlices; ++j) total += partial[j][s][i % kColumns];
    p.c[l * p.c_length + s * p.c_count] =
        finish(total, p.alpha, p.bias, p.bias_by_count ? s : l, p.activation);
  }
}

// --- outer: k is short ---

constexpr int kOuterThreads = 128;  // one per column
constexpr int kOuterRows = 8;

template <int K> __global__ void __launch_bounds__(kOuterThreads) outer_kernel(ProductArgs p) {
  wait_for_previous();
  __shared__ alignas(16) float tile[kOuterRows][K];  // of a
  static_assert(kOuterRows * K <= kOuterThreads);
  int column_blocks = (p.n + kOuterThreads - 1) / kOuterThreads;
  int row0 = static_cast<int>(blockIdx.x) / column_blocks * kOuterRows;
  int j = static_cast<int>(blockIdx.x) % column_blocks * kOuterThreads + threadIdx.x;
  float b[K];
#pragma unroll
  for (int k = 0; k < K; ++k) b[k] = k < p.k && j < p.n ? p.b[k * p.b_k + j] : 0.0f;
  if (threadIdx.x < kOuterRows * K) {
    int i = row0 + threadIdx.x / K, k = threadIdx.x % K;
    tile[threadIdx.x / K][k] = i < p.m && k < p.k ? p.a[i * p.a_row + k * p.a_k] : 0.0f;
  }
  __syncthreads();
  if (j >= p.n) return;
#pragma unroll
  for (int r = 0; r < kOuterRows; ++r) {
    if (row0 + r >= p.m) break;
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < K; k += 4) {
      auto a = *reinterpret_cast<const Pack<float, 4>*>(&tile[r][k]);
#pragma unroll
      for (int w = 0; w < 4; ++w) sum = fmaf(a.value[w], b[k + w], sum);
    }
    p.c[(row0 + r) * p.c_ld + j] = finish(sum, p.alpha, p.bias, j, p.activation);
  }
}

template <int K> void launch_outer_of(const ProductArgs& args, const LaunchContext& context) {
  auto blocks = ceil_div(args.n, kOuterThreads) * ceil_div(args.m, kOuterRows);
  launch_kernel("matmul", context, outer_kernel<K>, blocks, kOuterThreads, args);
}

template <int S> void launch_columns_of(const SkinnyArgs& args, const LaunchContext& context) {
  launch_kernel("matmul", context, columns_kernel<S>, ceil_div(args.length, kColumns), kSlices * 32,
                args);
}

}  // namespace

void launch_dot(const SkinnyArgs& args, bool vectors, const LaunchContext& context) {
  if (args.count <= 4) launch_dot_of<4>(args, vectors, context);
  else if (args.count <= 8) launch_dot_of<8>(args, vectors, context);
  else if (args.count <= 12) launch_dot_of<12>(args, vectors, context);
  else launch_dot_of<16>(args, vectors, context);
}

void launch_columns(const SkinnyArgs& args, const LaunchContext& context) {
  if (args.count <= 4) launch_columns_of<4>(args, context);
  else if (args.count <= 8) launch_columns_of<8>(args, context);
  else if (args.count <= 12) launch_columns_of<12>(args, context);
  else launch_columns_of<16>(args, context);
}

void launch_outer(const ProductArgs& args, const LaunchContext& context) {
  if (args.k <= 4) launch_outer_of<4>(args, context);
  else if (args.k <= 8) launch_outer_of<8>(args, context);
  else if (args.k <= 12) launch_outer_of<12>(args, context);
  else launch_outer_of<16>(args, context);
}

}  // namespace rensa::cuda

// The kernels of products with one short dimension. A short dimension is rounded up to S (or K), a
// multiple of four; what is added reads the last row again, or zeros, and is not stored.
#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/operations/matmul/cuda_kernels.h"
#include "rensa/operations/matmul/cuda_skinny.h"

namespace rensa::cuda {

namespace {

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
  constexpr int kPadded = S <= 4 ? 4 : S <= 8 ? 8 : 16;  // a power of two
  constexpr int kValues = R * kPadded, kGroup = kValues < 32 ? kValues : 32;
  __shared__ float partial[kMaxWarps][kValues];
  p.x += blockIdx.z * p.x_batch;
  p.s += blockIdx.z * p.s_batch;
  p.c += blockIdx.z * p.c_batch;
  if (p.gate) p.gate += blockIdx.z * p.c_batch;
  int row0 = blockIdx.x * R;
  float sum[R][S] = {};
  Pack<float, W> x[R];
  auto load = [&](int i) {
    if (i >= p.k) return;
#pragma unroll
    for (int r = 0; r < R; ++r) {
      int row = min(row0 + r, p.length - 1);
      x[r] = *reinterpret_cast<const Pack<float, W>*>(p.x + row * p.x_ld + i);
    }
  };
  int i = threadIdx.x * W, step = blockDim.x * W;
  if (p.x_settled) load(i);
  wait_for_previous();
  if (!p.x_settled) load(i);
  for (; i < p.k; i += step) {
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
    load(i + step);
  }
  // A thread has one sum at the end at most; what that meets is loaded before it is added up.
  static_assert(kValues <= 64);
  int end_row = row0 + static_cast<int>(threadIdx.x) / kPadded, end_s = threadIdx.x % kPadded;
  bool ends = threadIdx.x < kValues && end_row < p.length && end_s < p.count;
  std::int64_t end = end_row * p.c_length + end_s * p.c_count;
  bool open = ends && is_open(p.gate, end);
  float bias = ends ? bias_of(p.bias, p.bias_by_count ? end_s : end_row) : 0.0f;
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
  if (!ends) return;
  float total = 0.0f;
  for (int w = 0; w < static_cast<int>(blockDim.x) / 32; ++w) total += partial[w][threadIdx.x];
  p.c[end] = open ? finish<float>(total, p.alpha, bias, p.activation) : 0.0f;
}

template <int S>
void launch_dot_of(const SkinnyArgs& args, bool vectors, const LaunchContext& context) {
  int packs = vectors ? args.k / 4 : args.k;
  int threads = packs > 128 ? 256 : packs > 64 ? 128 : 64;  // at least one for each of its sums
  // Few rows: one per block, for as many blocks as there are; many: four share the short operand.
  constexpr int kFewRows = 256;
  bool few = args.length <= kFewRows;
  unsigned blocks = static_cast<unsigned>(few ? args.length : ceil_div(args.length, 4));
  auto kernel = few ? (vectors ? dot_kernel<S, 1, 4> : dot_kernel<S, 1, 1>)
                    : (vectors ? dot_kernel<S, 4, 4> : dot_kernel<S, 4, 1>);
  dim3 grid(blocks, 1, static_cast<unsigned>(args.batch));
  launch_kernel("matmul", context, kernel, grid, threads, args);
}

// --- outer: k is short ---

constexpr int kOuterThreads = 128;  // one per column
constexpr int kOuterRows = 8;

template <class T, int K>
__global__ void __launch_bounds__(kOuterThreads) outer_kernel(const __grid_constant__ OuterArgs p) {
  __shared__ alignas(16) float tile[kOuterRows][K];  // of a
  static_assert(kOuterRows * K <= kOuterThreads);
  const T* left = static_cast<const T*>(p.a) + blockIdx.z * p.a_batch;
  const T* right = static_cast<const T*>(p.b) + blockIdx.z * p.b_batch;
  T* c = static_cast<T*>(p.c) + blockIdx.z * p.c_batch;
  const T* gate = p.gate ? static_cast<const T*>(p.gate) + blockIdx.z * p.c_batch : nullptr;
  int column_blocks = (p.n + kOuterThreads - 1) / kOuterThreads;
  int row0 = static_cast<int>(blockIdx.x) / column_blocks * kOuterRows;
  int j = static_cast<int>(blockIdx.x) % column_blocks * kOuterThreads + threadIdx.x;
  float b[K];
  auto load_b = [&] {
#pragma unroll
    for (int k = 0; k < K; ++k) {
      b[k] = k < p.k && j < p.n ? convert<float>(right[k * p.b_k + j]) : 0.0f;
    }
  };
  if (p.b_settled) load_b();
  wait_for_previous();
  if (!p.b_settled) load_b();
  std::int64_t first = row0 * p.c_ld + j;
  unsigned open = 0;  // a bit for each row
#pragma unroll
  for (int r = 0; r < kOuterRows; ++r) {
    bool there = row0 + r < p.m && j < p.n;
    if (there && is_open(gate, first + r * p.c_ld)) open |= 1u << r;
  }
  float bias = j < p.n ? bias_of(static_cast<const T*>(p.bias), j) : 0.0f;
  if (threadIdx.x < kOuterRows * K) {
    int i = row0 + threadIdx.x / K, k = threadIdx.x % K;
    bool there = i < p.m && k < p.k;
    tile[threadIdx.x / K][k] = there ? convert<float>(left[i * p.a_row + k * p.a_k]) : 0.0f;
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
    T value = finish<T>(sum, p.alpha, bias, p.activation);
    c[first + r * p.c_ld] = open >> r & 1 ? value : T(0.0f);
  }
}

template <int K>
void launch_outer_of(Dtype dtype, const OuterArgs& args, const LaunchContext& context) {
  auto blocks = ceil_div(args.n, kOuterThreads) * ceil_div(args.m, kOuterRows);
  dim3 grid(static_cast<unsigned>(blocks), 1, static_cast<unsigned>(args.batch));
  auto kernel = dtype == Dtype::float16    ? outer_kernel<half_t, K>
                : dtype == Dtype::bfloat16 ? outer_kernel<bfloat16_t, K>
                                           : outer_kernel<float, K>;
  launch_kernel("matmul", context, kernel, grid, kOuterThreads, args);
}

}  // namespace

void launch_dot(const SkinnyArgs& args, bool vectors, const LaunchContext& context) {
  if (args.count <= 4) launch_dot_of<4>(args, vectors, context);
  else if (args.count <= 8) launch_dot_of<8>(args, vectors, context);
  else if (args.count <= 12) launch_dot_of<12>(args, vectors, context);
  else launch_dot_of<16>(args, vectors, context);
}

void launch_outer(Dtype dtype, const OuterArgs& args, const LaunchContext& context) {
  if (args.k <= 4) launch_outer_of<4>(dtype, args, context);
  else if (args.k <= 8) launch_outer_of<8>(dtype, args, context);
  else if (args.k <= 12) launch_outer_of<12>(dtype, args, context);
  else launch_outer_of<16>(dtype, args, context);
}

}  // namespace rensa::cuda

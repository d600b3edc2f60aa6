// The kernel of products whose short operand has up to kMaxSkinny rows, and k is contiguous in the
// long one. The short operand's rows are rounded up to S, a multiple of four; what is added reads
// the last row again, and is not stored.
#pragma once

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/operations/matmul/cuda_kernels.h"
#include "rensa/operations/matmul/cuda_skinny.h"

namespace rensa::cuda {

/// Of a block.
inline constexpr int kMaxDotWarps = 8;

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

/// What is made of whole rows of c: nothing.
struct NoRows {
  __device__ __forceinline__ NoRows(const SkinnyArgs&, int) {}
  __device__ __forceinline__ void gather() const {}
  template <int> __device__ __forceinline__ void store(const SkinnyArgs&, int, bool, float) const {}
  template <int, class Packs>
  __device__ __forceinline__ void finish(const SkinnyArgs&, int, const Packs&) const {}
};

/// What a thread has of both operands in registers: W elements along k of the R rows of the long
/// one, and where R is 1, which leaves registers for it, of the S of the short one.
template <int S, int R, int W> struct DotPacks {
  static constexpr bool kHasShort = R == 1;
  using P = Pack<float, W>;
  P x[R], s[kHasShort ? S : 1];

  /// Those at `i`; what is there already where k has none.
  __device__ __forceinline__ void load_long(const SkinnyArgs& p, int row0, int i) {
    if (i >= p.k) return;
#pragma unroll
    for (int r = 0; r < R; ++r) {
      int row = min(row0 + r, p.length - 1);
      x[r] = *reinterpret_cast<const P*>(p.x + row * p.x_ld + i);
    }
  }
  __device__ __forceinline__ void load_short(const SkinnyArgs& p, int i) {
    if constexpr (kHasShort) {
      if (i >= p.k) return;
#pragma unroll
      for (int n = 0; n < S; ++n) s[n] = from_memory(p, n, i);
    }
  }
  /// Of the n-th row of the short operand, at the `i` of the last load.
  __device__ __forceinline__ P short_pack(const SkinnyArgs& p, int n, int i) const {
    if constexpr (kHasShort) return s[n];
    else return from_memory(p, n, i);
  }

 private:
  static __device__ __forceinline__ P from_memory(const SkinnyArgs& p, int n, int i) {
    int row = min(n, p.count - 1);
    return *reinterpret_cast<const P*>(p.s + row * p.s_row + i * p.s_k);
  }
};

/// A block computes R rows of the long operand: its threads take every blockDim-th pack of W
/// elements along k. Args derives from SkinnyArgs and has a type Rows, for what is made of rows of
/// c: Rows(args, row) behind the wait, gather() before a barrier of the block, behind it in whole
/// warps, of which `group` neighbours have a row, store<group>(args, column, whether c has it, c's
/// element), and at last finish<group>(args, the block's first row, the thread's last packs), by
/// all threads.
template <int S, int R, int W, class Args>
__global__ void __launch_bounds__(kMaxDotWarps * 32, 2) dot_kernel(Args p) {
  constexpr int kPadded = S <= 4 ? 4 : S <= 8 ? 8 : 16;  // a power of two
  constexpr int kValues = R * kPadded, kGroup = kValues < 32 ? kValues : 32;
  __shared__ float partial[kMaxDotWarps][kValues];
  p.x += blockIdx.z * p.x_batch;
  p.s += blockIdx.z * p.s_batch;
  p.c += blockIdx.z * p.c_batch;
  if (p.gate) p.gate += blockIdx.z * p.c_batch;
  int row0 = blockIdx.x * R;
  float sum[R][S] = {};
  DotPacks<S, R, W> packs;
  int i = threadIdx.x * W, step = blockDim.x * W;
  if (p.x_settled) packs.load_long(p, row0, i);
  if (p.s_settled) packs.load_short(p, i);
  wait_for_previous();
  if (!p.x_settled) packs.load_long(p, row0, i);
  if (!p.s_settled) packs.load_short(p, i);
  int end_row = row0 + static_cast<int>(threadIdx.x) / kPadded, end_s = threadIdx.x % kPadded;
  typename Args::Rows rows(p, end_row);
  for (; i < p.k; i += step) {
#pragma unroll
    for (int s = 0; s < S; ++s) {
      Pack<float, W> y = packs.short_pack(p, s, i);
#pragma unroll
      for (int r = 0; r < R; ++r) {
#pragma unroll
        for (int w = 0; w < W; ++w) sum[r][s] = fmaf(packs.x[r].value[w], y.value[w], sum[r][s]);
      }
    }
    packs.load_long(p, row0, i + step);
    packs.load_short(p, i + step);
  }
  // A thread has one sum at the end at most; what that meets is loaded before it is added up.
  static_assert(kValues <= 64);
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
  rows.gather();
  __syncthreads();
  float value = 0.0f;
  if (ends) {
    float total = 0.0f;
    for (int w = 0; w < static_cast<int>(blockDim.x) / 32; ++w) total += partial[w][threadIdx.x];
    if (open) value = finish<float>(total, p.alpha, bias, p.activation);
    p.c[end] = value;
  }
  constexpr int kWholeWarps = (kValues + 31) / 32 * 32;  // of threads with a sum
  if (threadIdx.x < kWholeWarps) rows.template store<kPadded>(p, end_s, ends, value);
  rows.template finish<kPadded>(p, row0, packs);
}

template <int S, class Args>
void launch_dot_of(const Args& args, bool vectors, const LaunchContext& context) {
  int packs = vectors ? args.k / 4 : args.k;
  int threads = packs > 128 ? 256 : packs > 64 ? 128 : 64;  // at least one for each of its sums
  // Few rows: one per block, for as many blocks as there are; many: four share the short operand.
  constexpr int kFewRows = 256;
  bool few = args.length <= kFewRows;
  unsigned blocks = static_cast<unsigned>(few ? args.length : ceil_div(args.length, 4));
  auto kernel = few ? (vectors ? dot_kernel<S, 1, 4, Args> : dot_kernel<S, 1, 1, Args>)
                    : (vectors ? dot_kernel<S, 4, 4, Args> : dot_kernel<S, 4, 1, Args>);
  dim3 grid(blocks, 1, static_cast<unsigned>(args.batch));
  launch_kernel("matmul", context, kernel, grid, threads, args);
}

template <class Args>
void launch_dot_rows(const Args& args, bool vectors, const LaunchContext& context) {
  if (args.count <= 4) launch_dot_of<4>(args, vectors, context);
  else if (args.count <= 8) launch_dot_of<8>(args, vectors, context);
  else if (args.count <= 12) launch_dot_of<12>(args, vectors, context);
  else launch_dot_of<16>(args, vectors, context);
}

}  // namespace rensa::cuda

// Products of all elements of a row but one, on a GPU: a warp or a block has a row in registers,
// which is scanned from both ends.
#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/core/scan_functors.h"
#include "rensa/operations/scan/product_grad.h"
#include "rensa/portable/block.h"

namespace rensa::cuda {

namespace {

constexpr int kWidth = 4;  // elements of a vector

template <class T> struct ProductGradArgs {
  const T* in;
  const T* scale;
  T* out;
  std::int64_t rows, n;
  bool vector;  // rows may be accessed kWidth elements at a time
};

// The products of what the warps before this one have, and of what those behind it have, joined to
// `before` and `behind`; `total` is the warp's own, in its last lane.
template <class V> __device__ __forceinline__ void join_both_ways(V total, V& before, V& behind) {
  __shared__ V totals[kBlock / 32];
  int warp = threadIdx.x / 32;
  if (threadIdx.x % 32 == 31) totals[warp] = total;
  __syncthreads();
#pragma unroll
  for (int w = 0; w < kBlock / 32; ++w) {
    if (w < warp) before *= totals[w];
    if (w > warp) behind *= totals[w];
  }
}

// kGroup threads, a warp or a block, have a row, kItems elements each.
template <class T, int kGroup, int kItems>
__global__ void __launch_bounds__(kBlock)
    multiply_others(const __grid_constant__ ProductGradArgs<T> args) {
  wait_for_previous();
  using V = ComputeOf<T>;
  static_assert(kGroup == 32 || kGroup == kBlock);
  std::int64_t row = blockIdx.x * std::int64_t{kBlock / kGroup} + threadIdx.x / kGroup;
  if (row >= args.rows) return;  // a whole group
  int lane = threadIdx.x % 32;
  std::int64_t first = threadIdx.x % kGroup * kItems, at = row * args.n + first;
  std::int64_t left = args.n - first;
  Pack<T, kWidth> pack[kItems / kWidth];
#pragma unroll
  for (int p = 0; p < kItems / kWidth; ++p) {
    pack[p] = load_pack<T, kWidth>(args.in + at + p * kWidth, left - p * kWidth, args.vector,
                                   convert<T>(V(1)));
  }
  V x[kItems], total = V(1);
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    x[k] = convert<V>(pack[k / kWidth].value[k % kWidth]);
    total *= x[k];
  }
  V upto = scan_lanes<RunningProduct>(total), from = total;
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    V other = shuffle_down(from, offset);
    if (lane + offset < 32) from *= other;
  }
  V before = shuffle_up(upto, 1), behind = shuffle_down(from, 1);
  if (lane == 0) before = V(1);
  if (lane == 31) behind = V(1);
  if constexpr (kGroup > 32) join_both_ways(upto, before, behind);
  behind *= convert<V>(args.scale[row]);
  V result[kItems];
#pragma unroll
  for (int k = kItems - 1; k >= 0; --k) {
    result[k] = behind;
    behind *= x[k];
  }
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    pack[k / kWidth].value[k % kWidth] = convert<T>(before * result[k]);
    before *= x[k];
  }
#pragma unroll
  for (int p = 0; p < kItems / kWidth; ++p) {
    store_pack<T, kWidth>(args.out + at + p * kWidth, pack[p], left - p * kWidth, args.vector);
  }
}

template <class T> void run(const operations::ProductGrad& op, const LaunchContext& context) {
  std::int64_t rows = op.in.view.shape[0], n = op.in.view.shape[1];
  ProductGradArgs<T> args = {
      op.in.view.as<T>(), op.scale.view.as<T>(), op.out.view.as<T>(), rows, n, false};
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(Pack<T, kWidth>));
  args.vector = n % kWidth == 0 && is_aligned(args.in, kBytes) && is_aligned(args.out, kBytes);
  constexpr int kFew = 4, kMany = operations::ProductGrad::kMost / kBlock;  // a thread's elements
  auto launch = [&](void (*kernel)(ProductGradArgs<T>), std::int64_t blocks) {
    launch_kernel(op.name(), context, kernel, blocks, kBlock, args);
  };
  if (n <= 32 * kFew) launch(multiply_others<T, 32, kFew>, ceil_div(rows, kBlock / 32));
  else if (n <= kBlock * kFew) launch(multiply_others<T, kBlock, kFew>, rows);
  else launch(multiply_others<T, kBlock, kMany>, rows);
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

void ProductGrad::run_cuda(const cuda::LaunchContext& context) {
  if (out.view.size() == 0) return;
  visit_floating(out.view.dtype,
                 [&](auto element) { cuda::run<decltype(element)>(*this, context); });
}

}  // namespace rensa::operations

// Linear recurrences on a GPU: a block scans a row from its end, tile by tile. What it scans are
// the maps h -> add + factor * h from what stands behind an element to its own.
#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/operations/scan/recurrence.h"
#include "rensa/portable/block.h"

namespace rensa::cuda {

namespace {

template <class T> struct RecurrenceArgs {
  const T* in;
  const T* factor;
  T* out;
  std::int64_t n;
  std::int64_t given;  // elements of a row of `in`, the last ones: n or 1
};

template <class V> struct Affine {
  V factor, add;

  /// This map after `first`.
  __device__ __forceinline__ Affine after(Affine first) const {
    return {factor * first.factor, add + factor * first.add};
  }
  __device__ __forceinline__ V operator()(V behind) const { return add + factor * behind; }
};

template <class T>
__global__ void __launch_bounds__(kBlock)
    recur_by_block(const __grid_constant__ RecurrenceArgs<T> args) {
  wait_for_previous();
  using V = ComputeOf<T>;
  constexpr int kItems = 4, kTile = kItems * kBlock, kWarps = kBlock / 32;
  __shared__ V warp_factors[2][kWarps], warp_adds[2][kWarps];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  std::int64_t row = blockIdx.x * args.n, before_given = args.n - args.given;
  const T* in = args.in + blockIdx.x * args.given - before_given;
  const T* factor = args.factor + row;
  T* out = args.out + row;
  V behind = 0;  // of the tile
  int side = 0;  // of shared memory: the other one may still be read
  for (std::int64_t end = args.n; end > 0; end -= kTile, side ^= 1) {
    std::int64_t last = end - 1 - threadIdx.x * kItems;  // this thread's, from here to the front
    Affine<V> map[kItems];
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      std::int64_t i = last - k;
      map[k].add = i >= before_given ? convert<V>(in[i]) : V(0);
      map[k].factor = i >= 0 && i + 1 < args.n ? convert<V>(factor[i + 1]) : V(0);
    }
#pragma unroll
    for (int k = 1; k < kItems; ++k) map[k] = map[k].after(map[k - 1]);
    Affine<V> upto = map[kItems - 1];
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
      Affine<V> other = {shuffle_up(upto.factor, d), shuffle_up(upto.add, d)};
      if (lane >= d) upto = upto.after(other);
    }
    if (lane == 31) {
      warp_factors[side][warp] = upto.factor;
      warp_adds[side][warp] = upto.add;
    }
    Affine<V> before = {shuffle_up(upto.factor, 1), shuffle_up(upto.add, 1)};
    __syncthreads();
    V of_warp = behind;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      Affine<V> whole = {warp_factors[side][w], warp_adds[side][w]};
      behind = whole(behind);
      if (w + 1 == warp) of_warp = behind;
    }
    V next = lane > 0 ? before(of_warp) : of_warp;
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (last - k >= 0) out[last - k] = convert<T>(map[k](next));
    }
  }
}

template <class T> void run(const operations::Recurrence& op, const LaunchContext& context) {
  const Shape& shape = op.factor.view.shape;
  RecurrenceArgs<T> args = {op.in.view.as<T>(), op.factor.view.as<T>(), op.out.view.as<T>(),
                            shape[1], op.in.view.shape[1]};
  launch_kernel(op.name(), context, recur_by_block<T>, shape[0], kBlock, args);
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

void Recurrence::run_cuda(const cuda::LaunchContext& context) {
  if (out.view.size() == 0) return;
  visit_floating(out.view.dtype,
                 [&](auto element) { cuda::run<decltype(element)>(*this, context); });
}

}  // namespace rensa::operations

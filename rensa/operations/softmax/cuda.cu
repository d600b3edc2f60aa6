// Softmax over rows on a GPU. A row that fits is read once and stays in the registers of the warp
// or the block that has it; a longer one is read twice, the greatest element and the sum being
// found in one pass (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018).
#include <algorithm>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/core/error.h"
#include "rensa/core/functors.h"
#include "rensa/operations/softmax/softmax.h"

namespace rensa::cuda {

namespace {

struct SoftmaxArgs {
  const char* in;
  char* out;
  std::int64_t rows, columns;
  bool vector, log;
};

constexpr int kPacks = 8;  // of 16 bytes, that a thread keeps of its row
template <class T> inline constexpr int kWidth = 16 / static_cast<int>(sizeof(T));

// One element from what the row comes to: exp(x - greatest) * scale, or (x - greatest) - scale.
template <class V> struct Finish {
  V greatest, scale;
  bool log;
  __device__ Finish(V row_greatest, V sum, bool logarithm)
      : greatest(row_greatest), scale(logarithm ? m::log(sum) : V(1) / sum), log(logarithm) {}
  __device__ __forceinline__ V of(V x) const {
    return log ? (x - greatest) - scale : m::exp(x - greatest) * scale;
  }
};

// `group` threads, a warp or a block, to a row of at most group * kPacks packs.
template <class T, int group>
__global__ void __launch_bounds__(kBlock)
    softmax_in_registers(const __grid_constant__ SoftmaxArgs args) {
  using V = ComputeOf<T>;
  constexpr int W = kWidth<T>;
  std::int64_t row = blockIdx.x * static_cast<std::int64_t>(kBlock / group) + threadIdx.x / group;
  bool there = row < args.rows;  // every thread of a block meets the others in join_all
  int lane = threadIdx.x % group;
  const T* in = reinterpret_cast<const T*>(args.in) + row * args.columns;
  T* out = reinterpret_cast<T*>(args.out) + row * args.columns;
  Pack<T, W> packs[kPacks];
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    std::int64_t first = (lane + k * group) * static_cast<std::int64_t>(W);
    std::int64_t left = there ? args.columns - first : 0;
    packs[k] = load_pack<T, W>(in + first, left, args.vector, convert<T>(m::lowest<V>()));
  }
  V greatest = m::lowest<V>();
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
#pragma unroll
    for (int j = 0; j < W; ++j) greatest = m::maximum(greatest, convert<V>(packs[k].value[j]));
  }
  greatest = join_all<MaxOf<V>>(greatest, group);
  V sum = V(0);
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    std::int64_t left = args.columns - (lane + k * group) * static_cast<std::int64_t>(W);
#pragma unroll
    for (int j = 0; j < W; ++j) {
      if (j < left) sum += m::exp(convert<V>(packs[k].value[j]) - greatest);
    }
  }
  Finish<V> finish(greatest, join_all<SumOf<V>>(sum, group), args.log);
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    std::int64_t first = (lane + k * group) * static_cast<std::int64_t>(W);
    std::int64_t left = there ? args.columns - first : 0;
    if (left <= 0) break;
#pragma unroll
    for (int j = 0; j < W; ++j) {
      packs[k].value[j] = convert<T>(finish.of(convert<V>(packs[k].value[j])));
    }
    store_pack<T, W>(out + first, packs[k], left, args.vector);
  }
}

// A row of any length to a block.
template <class T>
__global__ void __launch_bounds__(kBlock)
    softmax_in_two_passes(const __grid_constant__ SoftmaxArgs args) {
  using V = ComputeOf<T>;
  constexpr int W = kWidth<T>;
  const T* in = reinterpret_cast<const T*>(args.in) + blockIdx.x * args.columns;
  T* out = reinterpret_cast<T*>(args.out) + blockIdx.x * args.columns;
  V greatest = m::lowest<V>(), sum = V(0);
  constexpr std::int64_t kStep = kBlock * W;
  for (std::int64_t i = threadIdx.x * W; i < args.columns; i += kStep) {
    Pack<T, W> pack =
        load_pack<T, W>(in + i, args.columns - i, args.vector, convert<T>(m::lowest<V>()));
    V most = greatest;
#pragma unroll
    for (int j = 0; j < W; ++j) most = m::maximum(most, convert<V>(pack.value[j]));
    sum = most == greatest ? sum : sum * m::exp(greatest - most);
    greatest = most;
#pragma unroll
    for (int j = 0; j < W; ++j) {
      if (j < args.columns - i) sum += m::exp(convert<V>(pack.value[j]) - greatest);
    }
  }
  V of_all = join_all<MaxOf<V>>(greatest, kBlock);
  sum = of_all == greatest ? sum : sum * m::exp(greatest - of_all);
  Finish<V> finish(of_all, join_all<SumOf<V>>(sum, kBlock), args.log);
  for (std::int64_t i = threadIdx.x * W; i < args.columns; i += kStep) {
    Pack<T, W> pack = load_pack<T, W>(in + i, args.columns - i, args.vector, T());
#pragma unroll
    for (int j = 0; j < W; ++j) pack.value[j] = convert<T>(finish.of(convert<V>(pack.value[j])));
    store_pack<T, W>(out + i, pack, args.columns - i, args.vector);
  }
}

template <class T>
void run_softmax(const char* name, const LaunchContext& context, SoftmaxArgs args) {
  constexpr std::int64_t kKept = kPacks * kWidth<T>;  // elements that a thread keeps
  args.vector =
      is_aligned(args.in, 16) && is_aligned(args.out, 16) && args.columns % kWidth<T> == 0;
  if (args.columns <= 32 * kKept) {
    launch_kernel(name, context, softmax_in_registers<T, 32>, ceil_div(args.rows, kBlock / 32),
                  kBlock, args);
  } else if (args.columns <= kBlock * kKept) {
    launch_kernel(name, context, softmax_in_registers<T, kBlock>, args.rows, kBlock, args);
  } else {
    launch_kernel(name, context, softmax_in_two_passes<T>, args.rows, kBlock, args);
  }
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

void Softmax::run_cuda(const cuda::LaunchContext& context) {
  if (out.view.size() == 0) return;
  // A launch has at most 2^31 - 1 blocks.
  constexpr std::int64_t kMostRows = std::int64_t{1} << 30;
  std::int64_t row_bytes = in.view.shape[1] * itemsize(in.view.dtype);
  for (std::int64_t row = 0; row < in.view.shape[0]; row += kMostRows) {
    cuda::SoftmaxArgs args = {in.view.data + row * row_bytes,
                              out.view.data + row * row_bytes,
                              std::min(kMostRows, in.view.shape[0] - row),
                              in.view.shape[1],
                              false,
                              log};
    switch (in.view.dtype) {
      case Dtype::float16: cuda::run_softmax<half_t>(name(), context, args); break;
      case Dtype::bfloat16: cuda::run_softmax<bfloat16_t>(name(), context, args); break;
      case Dtype::float32: cuda::run_softmax<float>(name(), context, args); break;
      default: cuda::run_softmax<double>(name(), context, args);
    }
  }
}

}  // namespace rensa::operations

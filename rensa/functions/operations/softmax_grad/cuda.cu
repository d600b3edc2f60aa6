// The gradient of softmax on a GPU. A row that fits is read once and stays in the registers of the
// warp or the block that has it; a longer one is read twice.
#include <algorithm>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/core/functors.h"
#include "rensa/functions/operations/softmax_grad/softmax_grad.h"

namespace rensa::cuda {

namespace {

struct SoftmaxGradArgs {
  const char *y, *gy;
  char* gx;
  std::int64_t rows, columns;
  bool vector, log;
};

constexpr int kPacks = 8;  // of 16 bytes, that a thread keeps of each of its two rows
template <class T> inline constexpr int kWidth = 16 / static_cast<int>(sizeof(T));

// What the element adds to its row's sum, and its gradient of that sum.
template <class V> __device__ __forceinline__ V term(V y, V gy, bool log) {
  return log ? gy : gy * y;
}
template <class V> __device__ __forceinline__ V gradient(V y, V gy, V sum, bool log) {
  return log ? gy - m::exp(y) * sum : y * (gy - sum);
}

// `group` threads, a warp or a block, to a row of at most group * kPacks packs.
template <class T, int group>
__global__ void __launch_bounds__(kBlock)
    softmax_grad_in_registers(const __grid_constant__ SoftmaxGradArgs args) {
  using V = ComputeOf<T>;
  constexpr int W = kWidth<T>;
  std::int64_t row = blockIdx.x * static_cast<std::int64_t>(kBlock / group) + threadIdx.x / group;
  bool there = row < args.rows;  // every thread of a block meets the others in join_all
  int lane = threadIdx.x % group;
  const T* y = reinterpret_cast<const T*>(args.y) + row * args.columns;
  const T* gy = reinterpret_cast<const T*>(args.gy) + row * args.columns;
  T* gx = reinterpret_cast<T*>(args.gx) + row * args.columns;
  Pack<T, W> ys[kPacks], gs[kPacks];
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    std::int64_t first = (lane + k * group) * static_cast<std::int64_t>(W);
    std::int64_t left = there ? args.columns - first : 0;
    ys[k] = load_pack<T, W>(y + first, left, args.vector, T());
    gs[k] = load_pack<T, W>(gy + first, left, args.vector, T());
  }
  V sum = V(0);
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
#pragma unroll
    for (int j = 0; j < W; ++j) {
      sum += term(convert<V>(ys[k].value[j]), convert<V>(gs[k].value[j]), args.log);
    }
  }
  sum = join_all<SumOf<V>>(sum, group);
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    std::int64_t first = (lane + k * group) * static_cast<std::int64_t>(W);
    std::int64_t left = there ? args.columns - first : 0;
    if (left <= 0) break;
#pragma unroll
    for (int j = 0; j < W; ++j) {
      V g = gradient(convert<V>(ys[k].value[j]), convert<V>(gs[k].value[j]), sum, args.log);
      gs[k].value[j] = convert<T>(g);
    }
    store_pack<T, W>(gx + first, gs[k], left, args.vector);
  }
}

// A row of any length to a block.
template <class T>
__global__ void __launch_bounds__(kBlock)
    softmax_grad_in_two_passes(const __grid_constant__ SoftmaxGradArgs args) {
  using V = ComputeOf<T>;
  constexpr int W = kWidth<T>;
  const T* y = reinterpret_cast<const T*>(args.y) + blockIdx.x * args.columns;
  const T* gy = reinterpret_cast<const T*>(args.gy) + blockIdx.x * args.columns;
  T* gx = reinterpret_cast<T*>(args.gx) + blockIdx.x * args.columns;
  constexpr std::int64_t kStep = kBlock * W;
  V sum = V(0);
  for (std::int64_t i = threadIdx.x * W; i < args.columns; i += kStep) {
    Pack<T, W> ys = load_pack<T, W>(y + i, args.columns - i, args.vector, T());
    Pack<T, W> gs = load_pack<T, W>(gy + i, args.columns - i, args.vector, T());
#pragma unroll
    for (int j = 0; j < W; ++j) {
      sum += term(convert<V>(ys.value[j]), convert<V>(gs.value[j]), args.log);
    }
  }
  sum = join_all<SumOf<V>>(sum, kBlock);
  for (std::int64_t i = threadIdx.x * W; i < args.columns; i += kStep) {
    Pack<T, W> ys = load_pack<T, W>(y + i, args.columns - i, args.vector, T());
    Pack<T, W> gs = load_pack<T, W>(gy + i, args.columns - i, args.vector, T());
#pragma unroll
    for (int j = 0; j < W; ++j) {
      gs.value[j] =
          convert<T>(gradient(convert<V>(ys.value[j]), convert<V>(gs.value[j]), sum, args.log));
    }
    store_pack<T, W>(gx + i, gs, args.columns - i, args.vector);
  }
}

template <class T>
void run_softmax_grad(const char* name, const LaunchContext& context, SoftmaxGradArgs args) {
  constexpr std::int64_t kKept = kPacks * kWidth<T>;  // elements that a thread keeps of a row
  args.vector = is_aligned(args.y, 16) && is_aligned(args.gy, 16) && is_aligned(args.gx, 16) &&
                args.columns % kWidth<T> == 0;
  if (args.columns <= 32 * kKept) {
    launch_kernel(name, context, softmax_grad_in_registers<T, 32>, ceil_div(args.rows, kBlock / 32),
                  kBlock, args);
  } else if (args.columns <= kBlock * kKept) {
    launch_kernel(name, context, softmax_grad_in_registers<T, kBlock>, args.rows, kBlock, args);
  } else {
    launch_kernel(name, context, softmax_grad_in_two_passes<T>, args.rows, kBlock, args);
  }
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

void SoftmaxGrad::run_cuda(const cuda::LaunchContext& context) {
  if (gx.view.size() == 0) return;
  // A launch has at most 2^31 - 1 blocks.
  constexpr std::int64_t kMostRows = std::int64_t{1} << 30;
  std::int64_t row_bytes = y.view.shape[1] * itemsize(y.view.dtype);
  for (std::int64_t row = 0; row < y.view.shape[0]; row += kMostRows) {
    std::int64_t offset = row * row_bytes;
    cuda::SoftmaxGradArgs args = {y.view.data + offset,
                                  gy.view.data + offset,
                                  gx.view.data + offset,
                                  std::min(kMostRows, y.view.shape[0] - row),
                                  y.view.shape[1],
                                  false,
                                  log};
    switch (y.view.dtype) {
      case Dtype::float16: cuda::run_softmax_grad<half_t>(name(), context, args); break;
      case Dtype::bfloat16: cuda::run_softmax_grad<bfloat16_t>(name(), context, args); break;
      case Dtype::float32: cuda::run_softmax_grad<float>(name(), context, args); break;
      default: cuda::run_softmax_grad<double>(name(), context, args);
    }
  }
}

}  // namespace rensa::operations

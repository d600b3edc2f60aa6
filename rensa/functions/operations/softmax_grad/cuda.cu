// The gradient of softmax on a GPU. A row that fits is read once and stays in the registers of the
// warp or the block that has it; a longer one is read twice.
#include <algorithm>

#include "rensa/backend/cuda/packed_conversion.cuh"
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

constexpr int kPacks = 8;   // of 16 bytes, that a thread keeps of each of its two rows
constexpr int kAtOnce = 2;  // that it has under way of each of two longer ones
template <class T> inline constexpr int kWidth = 16 / static_cast<int>(sizeof(T));

// What the element adds to its row's sum.
template <class V> __device__ __forceinline__ V term(V y, V gy, bool log) {
  return log ? gy : gy * y;
}
// The gradients of the elements, of that sum.
template <class T, int W, class V>
__device__ __forceinline__ Pack<T, W> gradients(const Vector<T, W>& y, const Vector<T, W>& gy,
                                                V sum, bool log) {
  V gx[W];
  if (log) {
#pragma unroll
    for (int j = 0; j < W; ++j) gx[j] = gy.value(j) - m::exp(y.value(j)) * sum;
  } else {
#pragma unroll
    for (int j = 0; j < W; ++j) gx[j] = y.value(j) * (gy.value(j) - sum);
  }
  return pack_of<T>(gx);
}

// `group` threads, a warp or a block, to a row of at most group * kPacks packs.
template <class T, int group>
__global__ void __launch_bounds__(kBlock)
    softmax_grad_in_registers(const __grid_constant__ SoftmaxGradArgs args) {
  wait_for_previous();
  using V = ComputeOf<T>;
  constexpr int W = kWidth<T>;
  std::int64_t row = blockIdx.x * static_cast<std::int64_t>(kBlock / group) + threadIdx.x / group;
  bool there = row < args.rows;  // every thread of a block meets the others in join_all
  int lane = threadIdx.x % group;
  const T* y = reinterpret_cast<const T*>(args.y) + row * args.columns;
  const T* gy = reinterpret_cast<const T*>(args.gy) + row * args.columns;
  T* gx = reinterpret_cast<T*>(args.gx) + row * args.columns;
  int left = there ? static_cast<int>(args.columns) - lane * W : 0;  // from its first pack on
  Vector<T> ys[kPacks], gs[kPacks];
  load_vectors(ys, y + lane * W, left, group * W, args.vector, T());
  load_vectors(gs, gy + lane * W, left, group * W, args.vector, T());
  V sum = V(0);
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    if (k * group * W >= left) break;
#pragma unroll
    for (int j = 0; j < W; ++j) sum += term(ys[k].value(j), gs[k].value(j), args.log);
  }
  sum = join_all<SumOf<V>>(sum, group);
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    int first = k * group * W;
    if (first >= left) break;
    store_pack<T, W>(gx + lane * W + first, gradients(ys[k], gs[k], sum, args.log), left - first,
                     args.vector);
  }
}

// A row of any length to a block.
template <class T>
__global__ void __launch_bounds__(kBlock)
    softmax_grad_in_two_passes(const __grid_constant__ SoftmaxGradArgs args) {
  wait_for_previous();
  using V = ComputeOf<T>;
  constexpr int W = kWidth<T>;
  const T* y = reinterpret_cast<const T*>(args.y) + blockIdx.x * args.columns;
  const T* gy = reinterpret_cast<const T*>(args.gy) + blockIdx.x * args.columns;
  T* gx = reinterpret_cast<T*>(args.gx) + blockIdx.x * args.columns;
  constexpr int kStep = kBlock * W;
  V sum = V(0);
  for (std::int64_t i = threadIdx.x * W; i < args.columns; i += kAtOnce * kStep) {
    std::int64_t left = args.columns - i;
    Vector<T> ys[kAtOnce], gs[kAtOnce];
    load_vectors(ys, y + i, left, kStep, args.vector, T());
    load_vectors(gs, gy + i, left, kStep, args.vector, T());
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      if (k * kStep >= left) break;
#pragma unroll
      for (int j = 0; j < W; ++j) sum += term(ys[k].value(j), gs[k].value(j), args.log);
    }
  }
  sum = join_all<SumOf<V>>(sum, kBlock);
  for (std::int64_t i = threadIdx.x * W; i < args.columns; i += kAtOnce * kStep) {
    std::int64_t left = args.columns - i;
    Vector<T> ys[kAtOnce], gs[kAtOnce];
    load_vectors(ys, y + i, left, kStep, args.vector, T());
    load_vectors(gs, gy + i, left, kStep, args.vector, T());
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      if (k * kStep >= left) break;
      store_pack<T, W>(gx + i + k * kStep, gradients(ys[k], gs[k], sum, args.log), left - k * kStep,
                       args.vector);
    }
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

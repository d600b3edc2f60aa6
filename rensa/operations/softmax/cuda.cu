// Softmax over rows on a GPU. A row that fits is read once and stays in the registers of the warp
// or the block that has it; a longer one is read twice, the greatest element and the sum being
// found in one pass (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018).
#include <algorithm>

#include "rensa/backend/cuda/packed_conversion.cuh"
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

constexpr int kPacks = 8;   // of 16 bytes, that a thread keeps of its row
constexpr int kAtOnce = 4;  // that it has under way of a longer one
template <class T> inline constexpr int kWidth = 16 / static_cast<int>(sizeof(T));

// Elements from what the row comes to: exp(x - greatest) * scale, or (x - greatest) - scale.
template <class V> struct Finish {
  V greatest, scale;
  bool log;
  __device__ Finish(V row_greatest, V sum, bool logarithm)
      : greatest(row_greatest), scale(logarithm ? m::log(sum) : V(1) / sum), log(logarithm) {}
  template <class T, int W> __device__ __forceinline__ Pack<T, W> of(const Vector<T, W>& x) const {
    V y[W];
    if (log) {
#pragma unroll
      for (int j = 0; j < W; ++j) y[j] = (x.value(j) - greatest) - scale;
    } else {
#pragma unroll
      for (int j = 0; j < W; ++j) y[j] = m::exp(x.value(j) - greatest) * scale;
    }
    return pack_of<T>(y);
  }
};

// `group` threads, a warp or a block, to a row of at most group * kPacks packs.
template <class T, int group>
__global__ void __launch_bounds__(kBlock)
    softmax_in_registers(const __grid_constant__ SoftmaxArgs args) {
  wait_for_previous();
  using V = ComputeOf<T>;
  constexpr int W = kWidth<T>;
  std::int64_t row = blockIdx.x * static_cast<std::int64_t>(kBlock / group) + threadIdx.x / group;
  bool there = row < args.rows;  // every thread of a block meets the others in join_all
  int lane = threadIdx.x % group;
  const T* in = reinterpret_cast<const T*>(args.in) + row * args.columns;
  T* out = reinterpret_cast<T*>(args.out) + row * args.columns;
  int left = there ? static_cast<int>(args.columns) - lane * W : 0;  // from its first pack on
  Vector<T> x[kPacks];
  load_vectors(x, in + lane * W, left, group * W, args.vector, convert<T>(m::lowest<V>()));
  V greatest = m::lowest<V>();
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    if (k * group * W >= left) break;
#pragma unroll
    for (int j = 0; j < W; ++j) greatest = m::maximum(greatest, x[k].value(j));
  }
  greatest = join_all<MaxOf<V>>(greatest, group);
  // What is not there of a pack is -inf: it adds 0, or NaN where all of the row are -inf and the
  // sum is NaN.
  V sum = V(0);
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    if (k * group * W >= left) break;
#pragma unroll
    for (int j = 0; j < W; ++j) sum += m::exp(x[k].value(j) - greatest);
  }
  Finish<V> finish(greatest, join_all<SumOf<V>>(sum, group), args.log);
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    int first = k * group * W;
    if (first >= left) break;
    store_pack<T, W>(out + lane * W + first, finish.of(x[k]), left - first, args.vector);
  }
}

// A row of any length to a block.
template <class T>
__global__ void __launch_bounds__(kBlock)
    softmax_in_two_passes(const __grid_constant__ SoftmaxArgs args) {
  wait_for_previous();
  using V = ComputeOf<T>;
  constexpr int W = kWidth<T>;
  const T* in = reinterpret_cast<const T*>(args.in) + blockIdx.x * args.columns;
  T* out = reinterpret_cast<T*>(args.out) + blockIdx.x * args.columns;
  V greatest = m::lowest<V>(), sum = V(0);
  constexpr int kStep = kBlock * W;
  for (std::int64_t i = threadIdx.x * W; i < args.columns; i += kAtOnce * kStep) {
    std::int64_t left = args.columns - i;
    Vector<T> x[kAtOnce];
    load_vectors(x, in + i, left, kStep, args.vector, convert<T>(m::lowest<V>()));
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      if (k * kStep >= left) break;
      V most = greatest;
#pragma unroll
      for (int j = 0; j < W; ++j) most = m::maximum(most, x[k].value(j));
      sum = most == greatest ? sum : sum * m::exp(greatest - most);
      greatest = most;
#pragma unroll
      for (int j = 0; j < W; ++j) sum += m::exp(x[k].value(j) - greatest);  // absent ones: as above
    }
  }
  V of_all = join_all<MaxOf<V>>(greatest, kBlock);
  sum = of_all == greatest ? sum : sum * m::exp(greatest - of_all);
  Finish<V> finish(of_all, join_all<SumOf<V>>(sum, kBlock), args.log);
  for (std::int64_t i = threadIdx.x * W; i < args.columns; i += kAtOnce * kStep) {
    std::int64_t left = args.columns - i;
    Vector<T> x[kAtOnce];
    load_vectors(x, in + i, left, kStep, args.vector, T());
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      if (k * kStep >= left) break;
      store_pack<T, W>(out + i + k * kStep, finish.of(x[k]), left - k * kStep, args.vector);
    }
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

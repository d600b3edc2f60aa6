// Which integers an array holds, on a GPU. Over a small range each block marks them as bits in its
// shared memory and writes those out at its end; over a larger one they are marked where they are.
// What is marked already is only looked at, so that frequent values cost no more than rare ones.
#include <algorithm>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/operations/mark_present/mark_present.h"

namespace rensa::cuda {

namespace {

constexpr int kSharedWords = 8192;
constexpr int kAhead = 8;  // elements whose loads are in flight together

struct PresenceArgs {
  const char* in;
  Dtype dtype;
  int log2_size;
  long long low;
  std::int64_t n, span;
  bool* flags;
};

/// Calls mark(value - low) for this thread's elements.
template <class F>
__device__ __forceinline__ void for_each_value(const PresenceArgs& args, const F& mark) {
  std::int64_t tile = static_cast<std::int64_t>(kBlock) * kAhead, step = gridDim.x * tile;
  for (std::int64_t begin = blockIdx.x * tile + threadIdx.x; begin < args.n; begin += step) {
    long long value[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      std::int64_t i = begin + k * kBlock < args.n ? begin + k * kBlock : begin;
      value[k] = load_integer(args.in + (i << args.log2_size), args.dtype);
    }
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      mark(static_cast<unsigned long long>(value[k]) - static_cast<unsigned long long>(args.low));
    }
  }
}

__global__ void __launch_bounds__(kBlock) mark_bits(const __grid_constant__ PresenceArgs args) {
  wait_for_previous();
  __shared__ unsigned bits[kSharedWords];
  int words = static_cast<int>((args.span + 31) / 32);
  for (int w = threadIdx.x; w < words; w += kBlock) bits[w] = 0;
  __syncthreads();
  for_each_value(args, [&](unsigned long long at) {
    unsigned* word = bits + at / 32;
    unsigned bit = 1u << at % 32;
    if (!(*static_cast<volatile unsigned*>(word) & bit)) atomicOr(word, bit);
  });
  __syncthreads();
  for (int w = threadIdx.x; w < words; w += kBlock) {
    for (unsigned left = bits[w]; left != 0; left &= left - 1) {
      args.flags[w * 32 + __ffs(left) - 1] = true;
    }
  }
}

__global__ void __launch_bounds__(kBlock) mark_bytes(const __grid_constant__ PresenceArgs args) {
  wait_for_previous();
  for_each_value(args, [&](unsigned long long at) {
    if (!args.flags[at]) args.flags[at] = true;
  });
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

void MarkPresent::run_cuda(const cuda::LaunchContext& context) {
  cuda::PresenceArgs args = {};
  args.in = in.view.data;
  args.dtype = in.view.dtype;
  while ((std::int64_t{1} << args.log2_size) < itemsize(args.dtype)) ++args.log2_size;
  args.low = low;
  args.n = in.view.size();
  args.span = flags.view.size();
  args.flags = flags.view.as<bool>();
  RENSA_CUDA_CHECK(name(), cudaMemsetAsync(args.flags, 0, static_cast<std::size_t>(args.span),
                                           static_cast<cudaStream_t>(context.handle)));
  if (args.n == 0) return;
  bool shared = args.span <= 32 * cuda::kSharedWords;
  std::int64_t blocks = std::min(ceil_div(args.n, cuda::kBlock * cuda::kAhead),
                                 std::int64_t{shared ? 7 : 32} * cuda::kMultiprocessors);
  cuda::launch_kernel(name(), context, shared ? cuda::mark_bits : cuda::mark_bytes, blocks,
                      cuda::kBlock, args);
}

}  // namespace rensa::operations

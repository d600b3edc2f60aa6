// Dropout on a GPU.
#include <cmath>

#include "rensa/backend/cuda/packed_conversion.cuh"
#include "rensa/functions/operations/dropout/dropout.h"
#include "rensa/operations/random/cuda_philox.cuh"

namespace rensa::cuda {

namespace {

struct DropArgs : RandomArgs {
  const char* in;
  unsigned least;                // kept: elements whose word's upper 24 bits are no less
  double keep;                   // the share that is kept
  float float_keep, reciprocal;  // in float, and 1 / float_keep
};

// Whether the steps below give x / keep, rounded as a division is: with a share of at least 2^-24
// nothing of them overflows or loses digits in subnormals. Without a branch.
__device__ __forceinline__ bool is_ordinary(float x) {
  return (x == 0.0f) | ((fabsf(x) >= 0x1p-60f) & (fabsf(x) <= 0x1p60f));
}

// All elements divided by the share. Of floats, whose division is long for a GPU, by its
// reciprocal: the quotient is corrected twice by what it misses, which is computed exactly
// (Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", 1990).
__device__ __forceinline__ void divide(const DropArgs& args, float (&x)[kElements]) {
  bool ordinary = true;
#pragma unroll
  for (float element : x) ordinary &= is_ordinary(element);
  if (!ordinary) {
#pragma unroll
    for (float& element : x) element = element / args.float_keep;
    return;
  }
#pragma unroll
  for (float& element : x) {
    float quotient = element * args.reciprocal;
#pragma unroll
    for (int step = 0; step < 2; ++step) {
      float missing = fmaf(-args.float_keep, quotient, element);
      quotient = fmaf(missing, args.reciprocal, quotient);
    }
    element = copysignf(quotient, element);  // of -0 the steps make 0
  }
}
__device__ __forceinline__ void divide(const DropArgs& args, double (&x)[kElements]) {
#pragma unroll
  for (double& element : x) element = element / args.keep;
}

// As fill_random. All that a thread reads is on its way before it makes the words.
template <class T>
__global__ void __launch_bounds__(kBlock) drop(const __grid_constant__ DropArgs args) {
  wait_for_previous();
  using V = ComputeOf<T>;
  std::int64_t first = blockIdx.x * static_cast<std::int64_t>(kBlock * kPacks) + threadIdx.x;
  std::int64_t block_end = (blockIdx.x + std::int64_t{1}) * (kBlock * kPacks * kElements);
  bool whole = args.vector && (args.size % kElements == 0 || block_end <= args.size);
  Vector<T, kElements> in[kPacks];
  load_vectors(in, reinterpret_cast<const T*>(args.in) + first * kElements,
               args.size - first * kElements, kBlock * kElements, whole, T());
  unsigned long long seed = integer_of(args.seed), offset = integer_of(args.offset);
  Words<1> words[kPacks];
#pragma unroll
  for (int k = 0; k < kPacks; ++k) words[k] = words_of<1>(seed, offset, first + k * kBlock);
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    std::int64_t i = first + k * kBlock;
    if (i * kElements >= args.size) break;
    V x[kElements];
#pragma unroll
    for (int j = 0; j < kElements; ++j) x[j] = in[k].value(j);
    divide(args, x);
#pragma unroll
    for (int j = 0; j < kElements; ++j) x[j] = words[k].word[j] >> 8 >= args.least ? x[j] : V(0);
    store_elements(args, i, pack_of<T>(x));
  }
}

using DropKernel = void (*)(DropArgs);

DropKernel drop_kernel(Dtype d) {
  switch (d) {
    case Dtype::float16: return drop<half_t>;
    case Dtype::bfloat16: return drop<bfloat16_t>;
    case Dtype::float32: return drop<float>;
    default: return drop<double>;
  }
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

void Dropout::run_cuda(const cuda::LaunchContext& context) {
  if (out.view.size() == 0) return;
  cuda::DropArgs args = {};
  args.seed = seed;
  args.offset = offset;
  args.in = in.view.data;
  args.out = out.view.data;
  args.dtype = out.view.dtype;
  args.size = out.view.size();
  // A word's upper 24 bits are a number in [0, 1) as float holds it (uniform_float).
  args.least = static_cast<unsigned>(std::ceil(static_cast<float>(ratio) * 0x1p24f));
  args.keep = 1.0 - ratio;
  args.float_keep = 1.0f - static_cast<float>(ratio);
  args.reciprocal = 1.0f / args.float_keep;
  std::int64_t bytes = cuda::kElements * itemsize(args.dtype);
  args.vector = cuda::is_aligned(args.out, bytes) && cuda::is_aligned(args.in, bytes);
  cuda::launch_random(name(), context, cuda::drop_kernel(args.dtype), args);
}

}  // namespace rensa::operations

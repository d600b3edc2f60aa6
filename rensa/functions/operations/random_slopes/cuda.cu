// The randomized leaky rectifier on a GPU.
#include "rensa/backend/cuda/packed_conversion.cuh"
#include "rensa/functions/operations/random_slopes/random_slopes.h"
#include "rensa/operations/random/cuda_philox.cuh"

namespace rensa::cuda {

namespace {

struct SlopeArgs : RandomArgs {
  const char* in;
  char* r;
};

// As fill_random. All that a thread reads is on its way before it makes the words.
template <class T>
__global__ void __launch_bounds__(kBlock) rectify(const __grid_constant__ SlopeArgs args) {
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
  float low = static_cast<float>(args.a), span = static_cast<float>(args.b) - low;
  RandomArgs slopes = args;
  slopes.out = args.r;
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    std::int64_t i = first + k * kBlock;
    if (i * kElements >= args.size) break;
    Pack<T, kElements> r;
    V y[kElements];
#pragma unroll
    for (int j = 0; j < kElements; ++j) {
      r.value[j] = convert<T>(low + span * uniform_float(words[k].word[j]));
      V x = in[k].value(j), product = convert<V>(r.value[j]) * x;
      y[j] = x < V(0) ? product : x;
    }
    store_elements(slopes, i, r);
    store_elements(args, i, pack_of<T>(y));
  }
}

using SlopeKernel = void (*)(SlopeArgs);

SlopeKernel slope_kernel(Dtype d) {
  switch (d) {
    case Dtype::float16: return rectify<half_t>;
    case Dtype::bfloat16: return rectify<bfloat16_t>;
    case Dtype::float32: return rectify<float>;
    default: return rectify<double>;
  }
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

void RandomSlopes::run_cuda(const cuda::LaunchContext& context) {
  if (out.view.size() == 0) return;
  cuda::SlopeArgs args = {};
  args.seed = seed;
  args.offset = offset;
  args.in = in.view.data;
  args.r = r.view.data;
  args.out = out.view.data;
  args.dtype = out.view.dtype;
  args.size = out.view.size();
  args.a = low;
  args.b = high;
  std::int64_t bytes = cuda::kElements * itemsize(args.dtype);
  args.vector = cuda::is_aligned(args.out, bytes) && cuda::is_aligned(args.in, bytes) &&
                cuda::is_aligned(args.r, bytes);
  cuda::launch_random(name(), context, cuda::slope_kernel(args.dtype), args);
}

}  // namespace rensa::operations

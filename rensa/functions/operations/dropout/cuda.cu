// Dropout on a GPU.
#include "rensa/functions/operations/dropout/dropout.h"
#include "rensa/operations/random/cuda_philox.cuh"

namespace rensa::cuda {

namespace {

struct DropArgs : RandomArgs {
  const char* in;
  float ratio;
};

template <class V> struct Drop {
  using Args = DropArgs;
  static constexpr int kWords = 1;
  template <class T>
  static __device__ __forceinline__ void fill(const DropArgs& args, std::int64_t i,
                                              const Words<1>& words, Pack<T, kElements>& pack) {
    V keep = V(1) - static_cast<V>(args.a);
    std::int64_t begin = i * kElements;
    pack = load_pack<T, kElements>(reinterpret_cast<const T*>(args.in) + begin, args.size - begin,
                                   args.vector, T{});
#pragma unroll
    for (int j = 0; j < kElements; ++j) {
      bool kept = uniform_float(words.word[j]) >= args.ratio;
      pack.value[j] = convert<T>(kept ? convert<V>(pack.value[j]) / keep : V(0));
    }
  }
};

using DropKernel = void (*)(DropArgs);

DropKernel drop_kernel(Dtype d) {
  switch (d) {
    case Dtype::float16: return fill_random<Drop<float>, half_t>;
    case Dtype::bfloat16: return fill_random<Drop<float>, bfloat16_t>;
    case Dtype::float32: return fill_random<Drop<float>, float>;
    default: return fill_random<Drop<double>, double>;
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
  args.a = ratio;
  args.ratio = static_cast<float>(ratio);
  std::int64_t bytes = cuda::kElements * itemsize(args.dtype);
  args.vector = cuda::is_aligned(args.out, bytes) && cuda::is_aligned(args.in, bytes);
  cuda::launch_random(name(), context, cuda::drop_kernel(args.dtype), args);
}

}  // namespace rensa::operations

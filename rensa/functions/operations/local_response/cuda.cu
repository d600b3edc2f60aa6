// Local response normalization on a GPU: a thread goes along the channels of one place.
#include <algorithm>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/core/functors.h"
#include "rensa/functions/operations/local_response/local_response.h"

namespace rensa::cuda {

namespace {

struct ResponseArgs {
  const char *x, *gy;
  char* out;
  unsigned count;       // threads that work
  FastDiv inner, runs;  // runs: of the channels of one place
  int channels, run, half;
  double k, alpha, beta;
};

// The channels that a thread works on, of the elements at one place.
template <class T> struct Run {
  using V = ComputeOf<T>;
  const ResponseArgs& args;
  std::int64_t pitch;  // elements from channel to channel
  std::int64_t place;
  int first, end;
  V k, alpha, minus_beta;

  __device__ __forceinline__ Run(const ResponseArgs& a, unsigned index)
      : args(a),
        pitch(a.inner.divisor),
        k(static_cast<V>(a.k)),
        alpha(static_cast<V>(a.alpha)),
        minus_beta(static_cast<V>(-a.beta)) {
    unsigned rest = a.inner.divide(index), outer = a.runs.divide(rest);
    place = outer * pitch * a.channels + (index - rest * a.inner.divisor);
    first = static_cast<int>(rest - outer * a.runs.divisor) * a.run;
    end = min(first + a.run, a.channels);
  }
  __device__ __forceinline__ V value(const char* data, int channel) const {
    return convert<V>(reinterpret_cast<const T*>(data)[place + channel * pitch]);
  }
  __device__ __forceinline__ void store(int channel, V y) const {
    reinterpret_cast<T*>(args.out)[place + channel * pitch] = convert<T>(y);
  }
  __device__ __forceinline__ V scale(int channel) const {
    int last = min(channel + args.half, args.channels - 1);
    V sum = 0;
    for (int c = max(channel - args.half, 0); c <= last; ++c) {
      V x = value(args.x, c);
      sum += x * x;
    }
    return k + alpha * sum;
  }
};

template <class T>
__global__ void __launch_bounds__(kBlock) respond(const __grid_constant__ ResponseArgs args) {
  wait_for_previous();
  unsigned index = blockIdx.x * kBlock + threadIdx.x;
  if (index >= args.count) return;
  Run<T> run(args, index);
  for (int c = run.first; c < run.end; ++c) {
    run.store(c, run.value(args.x, c) * m::pow(run.scale(c), run.minus_beta));
  }
}

// What each channel gives to the gradients of those around it is computed once, and kept until the
// last of them is: a ring of one window in shared memory, and one of gy * s^-beta beside it.
template <class T>
__global__ void __launch_bounds__(kBlock) respond_grad(const __grid_constant__ ResponseArgs args) {
  wait_for_previous();
  using V = ComputeOf<T>;
  extern __shared__ double memory[];
  unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index >= args.count) return;
  Run<T> run(args, index);
  int window = 2 * args.half + 1, stride = static_cast<int>(blockDim.x);
  V* given = reinterpret_cast<V*>(memory) + threadIdx.x;
  V* scaled = given + window * stride;
  for (int i = 0; i < window; ++i) given[i * stride] = V(0);
  V factor = V(2) * run.alpha * run.minus_beta;
  int newest = 0;
  for (int c = run.first - args.half; c < run.end + args.half; ++c) {
    V product = 0, gives = 0;
    if (0 <= c && c < args.channels) {
      V scale = run.scale(c);
      product = run.value(args.gy, c) * m::pow(scale, run.minus_beta);
      gives = product * run.value(args.x, c) / scale;
    }
    given[newest * stride] = gives;
    scaled[newest * stride] = product;
    int oldest = newest + 1 == window ? 0 : newest + 1;
    int channel = c - args.half;
    if (channel >= run.first) {
      V sum = 0;
      for (int i = oldest; i < window; ++i) sum += given[i * stride];
      for (int i = 0; i < oldest; ++i) sum += given[i * stride];
      int middle = newest - args.half + (newest < args.half ? window : 0);
      run.store(channel, scaled[middle * stride] + factor * (run.value(args.x, channel) * sum));
    }
    newest = oldest;
  }
}

using ResponseKernel = void (*)(ResponseArgs);

ResponseKernel response_kernel(Dtype d, bool grad) {
  switch (d) {
    case Dtype::float16: return grad ? respond_grad<half_t> : respond<half_t>;
    case Dtype::bfloat16: return grad ? respond_grad<bfloat16_t> : respond<bfloat16_t>;
    case Dtype::float32: return grad ? respond_grad<float> : respond<float>;
    default: return grad ? respond_grad<double> : respond<double>;
  }
}

// Channels of a thread: many read what is around them once, but small arrays want all threads.
std::int64_t run_length(std::int64_t size, std::int64_t channels) {
  constexpr std::int64_t kMost = 16, kThreads = std::int64_t{kMultiprocessors} * 2048;
  return std::min(std::clamp<std::int64_t>(size / kThreads, 1, kMost), channels);
}

void launch_response(const operations::LocalResponse& op, const LaunchContext& context,
                     ResponseArgs args, std::int64_t places) {
  bool grad = op.gy.present();
  Dtype dtype = op.x.view.dtype;
  int block = kBlock;
  std::size_t bytes = 0;
  if (grad) {  // as many threads as have room for their rings
    std::size_t ring = 2 * static_cast<std::size_t>(2 * args.half + 1) *
                       (dtype == Dtype::float64 ? sizeof(double) : sizeof(float));
    while (block > 32 && ring * static_cast<std::size_t>(block) > 48 * 1024) block /= 2;
    bytes = ring * static_cast<std::size_t>(block);
  }
  args.count = static_cast<unsigned>(places);
  launch_kernel(op.name(), context, response_kernel(dtype, grad), ceil_div(places, block), block,
                args, bytes);
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

void LocalResponse::run_cuda(const cuda::LaunchContext& context) {
  const ArrayView& view = x.view;
  if (view.size() == 0) return;
  cuda::ResponseArgs args = {view.data, gy.view.data, out.view.data};
  args.run = static_cast<int>(cuda::run_length(view.size(), channels));
  std::int64_t runs = ceil_div(channels, args.run), each = runs * inner;
  args.inner = FastDiv(inner);
  args.runs = FastDiv(runs);
  args.channels = static_cast<int>(channels);
  args.half = static_cast<int>(std::min(half, channels));
  args.k = k;
  args.alpha = alpha;
  args.beta = beta;
  // In as many parts as indices of 32 bits want.
  std::int64_t most = std::max<std::int64_t>(cuda::kMaxCount / each, 1);
  for (std::int64_t done = 0; done < outer; done += most) {
    std::int64_t part = std::min(most, outer - done);
    cuda::launch_response(*this, context, args, part * each);
    std::int64_t bytes = part * channels * inner * itemsize(view.dtype);
    args.x += bytes, args.out += bytes;
    if (args.gy) args.gy += bytes;
  }
}

}  // namespace rensa::operations

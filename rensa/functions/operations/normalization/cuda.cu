// What is normalized, on a GPU: one pass over elements, each by the numbers of its channel.
#include <algorithm>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/core/error.h"
#include "rensa/core/functors.h"
#include "rensa/functions/operations/normalization/cuda_channel_numbers.cuh"
#include "rensa/functions/operations/normalization/normalization.h"

namespace rensa::cuda {

namespace {

using operations::Normalize;

struct NormalizeArgs {
  const char *x, *second;  // second: gy, the residual, or null
  char* out;
  const char *mean, *inv_std, *sum_gy, *sum_gyx;  // the sums may be null
  ChannelNumbers gamma, beta;
  std::int64_t size;        // elements
  FastDiv sample;           // elements of a sample
  FastDiv channels, inner;  // inner: elements of a channel that lie together
  FastDiv group;            // by which statistics are found among samples' channels
  bool gradient, groups, of_variance, relu, vector;
  double share, eps;         // 1 / count; of variances
  std::int64_t rows, sweep;  // channels last: places, and how many of them all threads take
};
using NormalizeKernel = void (*)(NormalizeArgs);

template <class V> __device__ __forceinline__ V statistic(const char* data, unsigned s) {
  return data ? reinterpret_cast<const V*>(data)[s] : V(0);
}

/// What a kernel is made for; what it does not need to know takes no registers.
enum class Form {
  alone,     // forward, without a residual
  forward,   // perhaps with one
  gradient,  // without relu
  masked,    // with relu's gradient first
  second,    // any that reads a second array
};
template <Form kForm> __device__ __forceinline__ bool is_gradient(const NormalizeArgs& args) {
  if constexpr (kForm == Form::second) return args.gradient;
  return kForm == Form::gradient || kForm == Form::masked;
}
template <Form kForm> __device__ __forceinline__ bool is_masked(const NormalizeArgs& args) {
  if constexpr (kForm == Form::second) return args.gradient && args.relu;
  return kForm == Form::masked;
}

/// b * (x - mean) + c, of the gradient with a * gy before it. Where relu comes between, gy counts
/// if a * (x - mean) + beta is positive.
template <class V> struct Line { V mean, a, b, c, beta; };

template <class V, Form kForm>
__device__ __forceinline__ Line<V> line_of(const NormalizeArgs& args, V gamma, V beta, unsigned s) {
  V mean = statistic<V>(args.mean, s), inv_std = statistic<V>(args.inv_std, s);
  if (args.of_variance) inv_std = V(1) / m::sqrt(inv_std + V(args.eps));
  V scale = inv_std * gamma;
  if (!is_gradient<kForm>(args)) return {mean, V(0), scale, beta, V(0)};
  V weight = (args.groups ? inv_std : scale) * V(args.share);
  return {mean, scale, -weight * inv_std * statistic<V>(args.sum_gyx, s),
          -weight * statistic<V>(args.sum_gy, s), beta};
}

/// beta where the kernel uses it.
template <class V, Form kForm>
__device__ __forceinline__ V beta_of(const NormalizeArgs& args, unsigned c) {
  return kForm == Form::gradient ? V(0) : number_of<V>(args.beta, c, V(0));
}

/// Of channel c of sample n.
template <class V, Form kForm>
__device__ __forceinline__ Line<V> line_at(const NormalizeArgs& args, unsigned n, unsigned c) {
  unsigned s = args.groups ? args.group.divide(n * args.channels.divisor + c) : c;
  return line_of<V, kForm>(args, number_of<V>(args.gamma, c, V(1)), beta_of<V, kForm>(args, c), s);
}

/// An element of the result.
template <class T, Form kForm, class V>
__device__ __forceinline__ T on_line(const NormalizeArgs& args, const Line<V>& line, T x,
                                     T second) {
  V far = convert<V>(x) - line.mean, y = line.b * far + line.c, other = convert<V>(second);
  if (is_gradient<kForm>(args)) {
    if (is_masked<kForm>(args)) {
      V h = convert<V>(convert<T>(line.a * far + line.beta));
      other = m::select(V(0) < h, other, V(0));
    }
    return convert<T>(line.a * other + y);
  }
  if (kForm != Form::alone && args.second) y = convert<V>(convert<T>(y)) + other;
  if (args.relu) y = m::select(y <= V(0), V(0), y);
  return convert<T>(y);
}

constexpr int kAtOnce = 4;  // vectors of a thread

/// Channels whose elements lie together: kWhole, each in whole vectors.
template <class T, Form kForm, bool kWhole>
__global__ void __launch_bounds__(kBlock)
    normalize_channels(const __grid_constant__ NormalizeArgs args) {
  using V = ComputeOf<T>;
  constexpr int W = 16 / sizeof(T);
  wait_for_previous();
  std::int64_t begin = (blockIdx.x * static_cast<std::int64_t>(kBlock * kAtOnce) + threadIdx.x) * W;
  Pack<T, W> x[kAtOnce], second[kAtOnce] = {};
#pragma unroll
  for (int u = 0; u < kAtOnce; ++u) {
    std::int64_t at = begin + u * (kBlock * W), left = args.size - at;
    x[u] = load_pack<T, W>(reinterpret_cast<const T*>(args.x) + at, left, args.vector,
                           convert<T>(0.0f));
    if constexpr (kForm != Form::alone) {
      second[u] = load_pack<T, W>(reinterpret_cast<const T*>(args.second) + at, left, args.vector,
                                  convert<T>(0.0f));
    }
  }
#pragma unroll
  for (int u = 0; u < kAtOnce; ++u) {
    std::int64_t at = begin + u * (kBlock * W), left = args.size - at;
    if (left <= 0) break;
    unsigned index = static_cast<unsigned>(at);
    unsigned n = args.sample.divide(index), row = args.inner.divide(index);
    unsigned c = row - n * args.channels.divisor, inside = index - row * args.inner.divisor;
    Line<V> line = line_at<V, kForm>(args, n, c);
#pragma unroll
    for (int j = 0; j < W; ++j) {
      if constexpr (!kWhole) {
        if (j >= left) break;
        if (inside == args.inner.divisor) {
          inside = 0;
          if (++c == args.channels.divisor) c = 0, ++n;
          line = line_at<V, kForm>(args, n, c);
        }
        ++inside;
      }
      x[u].value[j] = on_line<T, kForm>(args, line, x[u].value[j], second[u].value[j]);
    }
    store_pack<T, W>(reinterpret_cast<T*>(args.out) + at, x[u], left, args.vector);
  }
}

/// Channels side by side: a thread has a vector of channels in some places, of W elements, or of
/// one where rows of channels are no whole vectors.
template <class T, Form kForm, int W>
__global__ void __launch_bounds__(kBlock)
    normalize_places(const __grid_constant__ NormalizeArgs args) {
  using V = ComputeOf<T>;
  wait_for_previous();
  // args.sample divides by the vectors of a place.
  unsigned index = blockIdx.x * kBlock + threadIdx.x, vectors = args.sample.divisor;
  unsigned first = args.sample.divide(index), c = (index - first * vectors) * W;
  if (first >= args.sweep) return;
  V gamma[W], beta[W];
#pragma unroll
  for (int j = 0; j < W; ++j) {
    gamma[j] = number_of<V>(args.gamma, c + j, V(1));
    beta[j] = beta_of<V, kForm>(args, c + j);
  }
  Line<V> line[W];
  if (!args.groups) {
#pragma unroll
    for (int j = 0; j < W; ++j) {
      line[j] = line_of<V, kForm>(args, gamma[j], beta[j], c + j);
    }
  }
  for (std::int64_t row = first; row < args.rows; row += args.sweep) {
    if (args.groups) {
      unsigned n = args.inner.divide(static_cast<unsigned>(row));
#pragma unroll
      for (int j = 0; j < W; ++j) {
        unsigned s = args.group.divide(n * args.channels.divisor + c + j);
        line[j] = line_of<V, kForm>(args, gamma[j], beta[j], s);
      }
    }
    std::int64_t at = row * args.channels.divisor + c;
    Pack<T, W> x = load_pack<T, W>(reinterpret_cast<const T*>(args.x) + at, W, args.vector,
                                   convert<T>(0.0f)),
               second = {};
    if (kForm != Form::forward || args.second) {
      second = load_pack<T, W>(reinterpret_cast<const T*>(args.second) + at, W, args.vector,
                               convert<T>(0.0f));
    }
#pragma unroll
    for (int j = 0; j < W; ++j) {
      x.value[j] = on_line<T, kForm>(args, line[j], x.value[j], second.value[j]);
    }
    store_pack<T, W>(reinterpret_cast<T*>(args.out) + at, x, W, args.vector);
  }
}

template <class T> NormalizeKernel channels_kernel(const NormalizeArgs& args, bool whole) {
  if (!args.second) {
    return whole ? normalize_channels<T, Form::alone, true>
                 : normalize_channels<T, Form::alone, false>;
  }
  return whole ? normalize_channels<T, Form::second, true>
               : normalize_channels<T, Form::second, false>;
}

template <class T, int W> NormalizeKernel places_kernel(const NormalizeArgs& args) {
  if (!args.gradient) return normalize_places<T, Form::forward, W>;
  return args.relu ? normalize_places<T, Form::masked, W> : normalize_places<T, Form::gradient, W>;
}

template <class T>
void run_normalize(const Normalize& op, const LaunchContext& context, NormalizeArgs args) {
  constexpr int W = 16 / sizeof(T);
  args.vector = is_aligned(args.x, 16) && is_aligned(args.second, 16) && is_aligned(args.out, 16);
  if (!op.channels_last) {
    args.sample = FastDiv(op.channels * op.inner);
    launch_overlapped(op.name(), context, channels_kernel<T>(args, op.inner % W == 0),
                      static_cast<unsigned>(ceil_div(args.size, kBlock * W * kAtOnce)), kBlock,
                      args);
    return;
  }
  bool whole = op.channels % W == 0;
  NormalizeKernel kernel = whole ? places_kernel<T, W>(args) : places_kernel<T, 1>(args);
  std::int64_t vectors = whole ? op.channels / W : op.channels;
  args.rows = op.samples * op.inner;
  // As many threads as the GPU has at a time four times over; each has one place at least.
  constexpr std::int64_t kThreads = std::int64_t{kMultiprocessors} * 2048 * 4;
  args.sweep = std::min(args.rows, std::max<std::int64_t>(1, kThreads / vectors));
  args.sample = FastDiv(vectors);
  launch_overlapped(op.name(), context, kernel,
                    static_cast<unsigned>(ceil_div(args.sweep * vectors, kBlock)), kBlock, args);
}

void run_normalize(const Normalize& op, const LaunchContext& context, const NormalizeArgs& args) {
  switch (op.x.view.dtype) {
    case Dtype::float16: return run_normalize<half_t>(op, context, args);
    case Dtype::bfloat16: return run_normalize<bfloat16_t>(op, context, args);
    case Dtype::float32: return run_normalize<float>(op, context, args);
    default: return run_normalize<double>(op, context, args);
  }
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

void Normalize::run_cuda(const cuda::LaunchContext& context) {
  // Indices are 32-bit: more elements go in parts of some samples.
  std::int64_t each = channels * inner;
  if (out.view.size() == 0) return;
  if (each > cuda::kMaxCount) {
    throw NotImplementedError(std::string(name()) + ": samples of " + std::to_string(each) +
                              " elements are too large for one kernel");
  }
  std::int64_t most = cuda::kMaxCount / each, size = itemsize(x.view.dtype) * each;
  std::int64_t statistics = group > 0 ? channels / group * itemsize(mean.view.dtype) : 0;
  for (std::int64_t first = 0; first < samples; first += most) {
    Normalize part = *this;
    part.samples = std::min(most, samples - first);
    cuda::NormalizeArgs args = {};
    args.x = x.view.data + first * size;
    const Operand& other = gy.present() ? gy : residual;
    args.second = other.present() ? other.view.data + first * size : nullptr;
    args.out = out.view.data + first * size;
    auto statistic = [&](const Operand& operand) {
      return operand.present() ? operand.view.data + first * statistics : nullptr;
    };
    args.mean = statistic(mean);
    args.inv_std = statistic(inv_std);
    args.sum_gy = statistic(sum_gy);
    args.sum_gyx = statistic(sum_gyx);
    args.gamma = cuda::numbers_of(gamma, inv_std.view.dtype);
    args.beta = cuda::numbers_of(beta, inv_std.view.dtype);
    args.size = part.samples * each;
    args.channels = FastDiv(channels);
    args.inner = FastDiv(inner);
    args.group = FastDiv(std::max<std::int64_t>(group, 1));
    args.gradient = gy.present();
    args.groups = group > 0;
    args.of_variance = of_variance;
    args.relu = relu;
    args.share = 1 / count;
    args.eps = eps;
    cuda::run_normalize(part, context, args);
  }
}

}  // namespace rensa::operations

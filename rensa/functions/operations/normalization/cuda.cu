// What is normalized, on a GPU: one pass over elements, each by the numbers of its channel.
#include <algorithm>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/backend/cuda/packed_conversion.cuh"
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
  const char *mean, *inv_std, *sum_gy, *sum_gyx;  // the mean and the sums may be null
  ChannelNumbers gamma, beta;
  std::int64_t size;        // elements
  FastDiv sample;           // elements of a sample
  FastDiv channels, inner;  // inner: elements of a channel that lie together
  FastDiv group;            // by which statistics are found among samples' channels
  bool gradient, groups, of_variance, relu, vector;
  double share, eps;  // 1 / count; of variances
  // Channels last. A part is what has statistics of its own: a sample where groups have them, or
  // all. A block has a tile of channels in some rows of a part, `below` of them at a time; all
  // blocks of the tile have `sweep`.
  FastDiv tiles, blocks, width;  // of a row; of a tile in a part; vectors of a tile
  unsigned rows, below, sweep;
};
using NormalizeKernel = void (*)(NormalizeArgs);

/// What a kernel is made for; what it does not need to know takes no registers.
enum class Form {
  alone,     // forward, without a residual
  residual,  // forward, with one
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

/// What a line follows from, as it is loaded.
template <class V> struct LineSource {
  V mean, inv_std, sum_gy, sum_gyx;
  Raw<V> gamma, beta;
};

template <class V> __device__ __forceinline__ V statistic(const char* data, unsigned s) {
  return data ? reinterpret_cast<const V*>(data)[s] : V(0);
}

/// Of channel c of sample n.
template <class V, Form kForm>
__device__ __forceinline__ LineSource<V> load_line(const NormalizeArgs& args, unsigned n,
                                                   unsigned c) {
  unsigned s = args.groups ? args.group.divide(n * args.channels.divisor + c) : c;
  LineSource<V> from = {};
  from.mean = statistic<V>(args.mean, s);
  from.inv_std = statistic<V>(args.inv_std, s);
  from.gamma = load_number<V>(args.gamma, c);
  if constexpr (kForm != Form::gradient) from.beta = load_number<V>(args.beta, c);
  if (is_gradient<kForm>(args)) {
    from.sum_gy = statistic<V>(args.sum_gy, s);
    from.sum_gyx = statistic<V>(args.sum_gyx, s);
  }
  return from;
}

template <class V, Form kForm>
__device__ __forceinline__ Line<V> line_of(const NormalizeArgs& args, const LineSource<V>& from) {
  V inv_std = from.inv_std;
  if (args.of_variance) inv_std = V(1) / m::sqrt(inv_std + V(args.eps));
  V scale = inv_std * number_from(args.gamma, from.gamma, V(1)), beta = V(0);
  if constexpr (kForm != Form::gradient) beta = number_from(args.beta, from.beta, V(0));
  if (!is_gradient<kForm>(args)) return {from.mean, V(0), scale, beta, V(0)};
  V weight = (args.groups ? inv_std : scale) * V(args.share);
  return {from.mean, scale, -weight * inv_std * from.sum_gyx, -weight * from.sum_gy, beta};
}

/// Whether h as an element of T is positive: half of the smallest one is rounded to 0.
template <class T, class V> __device__ __forceinline__ bool rounds_to_positive(V h) {
  if constexpr (std::is_same_v<T, bfloat16_t>) return V(0x1p-134f) < h;
  if constexpr (std::is_same_v<T, half_t>) return V(0x1p-25f) < h;
  return V(0) < h;
}

/// A vector of the result, on a line for each element or on one for all.
template <class T, Form kForm, int W, class V, int L>
__device__ __forceinline__ Pack<T, W> on_lines(const NormalizeArgs& args, const Line<V> (&lines)[L],
                                               const Pack<T, W>& x, const Pack<T, W>& second) {
  static_assert(L == W || L == 1);
  V far[W], other[W], y[W];
  unpack(x, far);
  if constexpr (kForm != Form::alone) unpack(second, other);
#pragma unroll
  for (int j = 0; j < W; ++j) far[j] = far[j] - lines[L == 1 ? 0 : j].mean;
  if (is_gradient<kForm>(args)) {
#pragma unroll
    for (int j = 0; j < W; ++j) {
      const Line<V>& line = lines[L == 1 ? 0 : j];
      V gy = other[j];
      if (is_masked<kForm>(args)) {
        gy = m::select(rounds_to_positive<T>(line.a * far[j] + line.beta), gy, V(0));
      }
      y[j] = line.a * gy + (line.b * far[j] + line.c);
    }
    return pack_of<T>(y);
  }
#pragma unroll
  for (int j = 0; j < W; ++j) {
    const Line<V>& line = lines[L == 1 ? 0 : j];
    y[j] = line.b * far[j] + line.c;
  }
  if constexpr (kForm != Form::alone) {
    unpack(pack_of<T>(y), y);  // as if it had been stored
#pragma unroll
    for (int j = 0; j < W; ++j) y[j] = y[j] + other[j];
  }
  V least = args.relu ? V(0) : -m::infinity<V>();
#pragma unroll
  for (int j = 0; j < W; ++j) y[j] = m::select(y[j] <= least, least, y[j]);
  return pack_of<T>(y);
}

constexpr int kAtOnce = 4;  // vectors of a thread

/// A vector on its way, as words: elements of 16 bits would take a register each.
template <class T, int W>
using Carried = std::conditional_t<W * sizeof(T) == 16, Pack<unsigned, 4>, Pack<T, W>>;

template <class T, int W>
__device__ __forceinline__ Carried<T, W> load_carried(const char* data, unsigned at) {
  return *reinterpret_cast<const Carried<T, W>*>(reinterpret_cast<const T*>(data) + at);
}

/// The first `left` elements of one; the others are 0.
template <class T, int W>
__device__ __forceinline__ Carried<T, W> load_carried(const char* data, std::int64_t at,
                                                      std::int64_t left, bool vector) {
  if (vector && left >= W) {
    return *reinterpret_cast<const Carried<T, W>*>(reinterpret_cast<const T*>(data) + at);
  }
  return detail::bit_cast<Carried<T, W>>(
      load_pack<T, W>(reinterpret_cast<const T*>(data) + at, left, false, convert<T>(0.0f)));
}

/// Where a vector begins: sample, channel, and the element inside it.
struct Beginning {
  unsigned n, c, inside;
};
__device__ __forceinline__ Beginning beginning_at(const NormalizeArgs& args, unsigned index) {
  unsigned n = args.sample.divide(index), row = args.inner.divide(index);
  return {n, row - n * args.channels.divisor, index - row * args.inner.divisor};
}
__device__ __forceinline__ void to_next_channel(const NormalizeArgs& args, Beginning& from) {
  from.inside = 0;
  if (++from.c == args.channels.divisor) from.c = 0, ++from.n;
}

/// The lines of the first `count` elements of a vector: of several channels, of two where each has
/// a vector's elements.
template <Form kForm, int W, class V>
__device__ __forceinline__ void find_lines(const NormalizeArgs& args, Beginning from, int count,
                                           Line<V> line, Line<V> (&lines)[W]) {
  if (args.inner.divisor >= W) {
    int until = static_cast<int>(args.inner.divisor - from.inside);
    Line<V> next = line;
    if (until < count) {
      to_next_channel(args, from);
      next = line_of<V, kForm>(args, load_line<V, kForm>(args, from.n, from.c));
    }
#pragma unroll
    for (int j = 0; j < W; ++j) lines[j] = j < until ? line : next;
    return;
  }
#pragma unroll
  for (int j = 0; j < W; ++j) {
    if (from.inside == args.inner.divisor && j < count) {
      to_next_channel(args, from);
      line = line_of<V, kForm>(args, load_line<V, kForm>(args, from.n, from.c));
    }
    ++from.inside;
    lines[j] = line;
  }
}

/// Channels whose elements lie together, each in whole vectors that are aligned.
template <class T, Form kForm>
__global__ void __launch_bounds__(kBlock)
    normalize_whole_channels(const __grid_constant__ NormalizeArgs args) {
  using V = ComputeOf<T>;
  constexpr int W = 16 / sizeof(T);
  wait_for_previous();
  unsigned begin = (blockIdx.x * (kBlock * kAtOnce) + threadIdx.x) * W;
  Carried<T, W> x[kAtOnce], second[kAtOnce] = {};
#pragma unroll
  for (int u = 0; u < kAtOnce; ++u) {
    unsigned at = begin + u * (kBlock * W);
    if (at >= args.size) continue;
    x[u] = load_carried<T, W>(args.x, at);
    if constexpr (kForm != Form::alone) second[u] = load_carried<T, W>(args.second, at);
  }
  LineSource<V> from[kAtOnce];
#pragma unroll
  for (int u = 0; u < kAtOnce; ++u) {
    unsigned at = begin + u * (kBlock * W);
    Beginning place = beginning_at(args, at < args.size ? at : 0);
    from[u] = load_line<V, kForm>(args, place.n, place.c);
  }
#pragma unroll
  for (int u = 0; u < kAtOnce; ++u) {
    unsigned at = begin + u * (kBlock * W);
    if (at >= args.size) break;
    const Line<V> line[] = {line_of<V, kForm>(args, from[u])};
    *reinterpret_cast<Pack<T, W>*>(reinterpret_cast<T*>(args.out) + at) = on_lines<T, kForm>(
        args, line, detail::bit_cast<Pack<T, W>>(x[u]), detail::bit_cast<Pack<T, W>>(second[u]));
  }
}

/// Channels whose elements lie together, of any number.
template <class T, Form kForm>
__global__ void __launch_bounds__(kBlock)
    normalize_channels(const __grid_constant__ NormalizeArgs args) {
  using V = ComputeOf<T>;
  constexpr int W = 16 / sizeof(T);
  wait_for_previous();
  std::int64_t begin = (blockIdx.x * static_cast<std::int64_t>(kBlock * kAtOnce) + threadIdx.x) * W;
  Carried<T, W> x[kAtOnce], second[kAtOnce] = {};
#pragma unroll
  for (int u = 0; u < kAtOnce; ++u) {
    std::int64_t at = begin + u * (kBlock * W), left = args.size - at;
    x[u] = load_carried<T, W>(args.x, at, left, args.vector);
    if constexpr (kForm != Form::alone) {
      second[u] = load_carried<T, W>(args.second, at, left, args.vector);
    }
  }
#pragma unroll
  for (int u = 0; u < kAtOnce; ++u) {
    std::int64_t at = begin + u * (kBlock * W), left = args.size - at;
    if (left <= 0) break;
    Beginning from = beginning_at(args, static_cast<unsigned>(at));
    Line<V> line = line_of<V, kForm>(args, load_line<V, kForm>(args, from.n, from.c)), lines[W];
    find_lines<kForm>(args, from, left < W ? static_cast<int>(left) : W, line, lines);
    store_pack<T, W>(reinterpret_cast<T*>(args.out) + at,
                     on_lines<T, kForm>(args, lines, detail::bit_cast<Pack<T, W>>(x[u]),
                                        detail::bit_cast<Pack<T, W>>(second[u])),
                     left, args.vector);
  }
}

/// Blocks on a multiprocessor at a time, by the registers of lines and of vectors on their way.
template <class T, Form kForm, int W> constexpr int resident_blocks() {
  if (W == 1) return kForm == Form::alone ? 6 : sizeof(T) == 8 ? 4 : 5;
  if (kForm == Form::alone) return 4;
  return kForm == Form::residual || W * sizeof(ComputeOf<T>) < 32 ? 3 : 2;
}

/// Channels side by side: a thread has a vector of channels in some rows, of W elements, or of one
/// where rows of channels are no whole vectors. Each line of the block's tile is made by one thread
/// while the first vectors are on their way. The last rows come first: what read or wrote x before
/// has left them in the cache.
template <class T, Form kForm, int W>
__global__ void __launch_bounds__(kBlock, resident_blocks<T, kForm, W>())
    normalize_places(const __grid_constant__ NormalizeArgs args) {
  using V = ComputeOf<T>;
  __shared__ alignas(16) V table[sizeof(Line<V>) / sizeof(V)][kBlock];
  wait_for_previous();
  unsigned above = args.tiles.divide(blockIdx.x), tile = blockIdx.x - above * args.tiles.divisor;
  unsigned part = args.blocks.divide(above), block = above - part * args.blocks.divisor;
  unsigned line = threadIdx.x, channel = tile * args.width.divisor * W;
  unsigned lines = min(args.width.divisor * W, args.channels.divisor - channel);
  LineSource<V> from = {};
  if (line < lines) from = load_line<V, kForm>(args, part, channel + line);

  unsigned r = args.width.divide(threadIdx.x), first = (threadIdx.x - r * args.width.divisor) * W;
  unsigned row = r < args.below && first < lines ? block * args.below + r : args.rows;
  unsigned last = part * args.rows + args.rows - 1;
  auto offset = [&](unsigned i) { return (last - i) * args.channels.divisor + channel + first; };
  Carried<T, W> x[kAtOnce], second[kAtOnce] = {};
  auto load = [&] {
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      unsigned i = row + u * args.sweep;
      if (i >= args.rows) continue;
      unsigned at = offset(i);
      x[u] = load_carried<T, W>(args.x, at);
      if constexpr (kForm != Form::alone) second[u] = load_carried<T, W>(args.second, at);
    }
  };
  load();

  if (line < lines) {
    Line<V> made = line_of<V, kForm>(args, from);
    table[0][line] = made.mean, table[1][line] = made.a, table[2][line] = made.b;
    table[3][line] = made.c, table[4][line] = made.beta;
  }
  __syncthreads();
  Line<V> mine[W];
#pragma unroll
  for (int j = 0; j < W; ++j) {
    unsigned k = first + j;
    mine[j] = {table[0][k], table[1][k], table[2][k], table[3][k], table[4][k]};
  }
  while (row < args.rows) {
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      unsigned i = row + u * args.sweep;
      if (i >= args.rows) break;
      *reinterpret_cast<Pack<T, W>*>(reinterpret_cast<T*>(args.out) + offset(i)) =
          on_lines<T, kForm>(args, mine, detail::bit_cast<Pack<T, W>>(x[u]),
                             detail::bit_cast<Pack<T, W>>(second[u]));
    }
    row += kAtOnce * args.sweep;
    load();
  }
}

template <class T> NormalizeKernel channels_kernel(const NormalizeArgs& args, bool whole) {
  if (whole && args.vector) {
    return args.second ? normalize_whole_channels<T, Form::second>
                       : normalize_whole_channels<T, Form::alone>;
  }
  return args.second ? normalize_channels<T, Form::second> : normalize_channels<T, Form::alone>;
}

/// As many blocks as the GPU has at a time, where there is work for them. Where tiles and parts are
/// too many to share those evenly, several times as many.
template <class T, Form kForm, int W>
void launch_places(const Normalize& op, const LaunchContext& context, NormalizeArgs args) {
  std::int64_t rows = args.groups ? op.inner : op.samples * op.inner;
  std::int64_t parts = args.groups ? op.samples : 1, vectors = op.channels / W;
  std::int64_t most = W > 1 ? 32 : rows < 4 ? kBlock : 64;  // vectors of a tile
  static_assert(W * 32 <= kBlock);                          // a thread for each line
  std::int64_t width = ceil_div(vectors, ceil_div(vectors, most));
  std::int64_t tiles = ceil_div(vectors, width), below = kBlock / width;
  constexpr std::int64_t kResident = kMultiprocessors * resident_blocks<T, kForm, W>();
  std::int64_t units = tiles * parts, blocks = kResident / units,
               each = 1;  // rows of a thread at least
  if (units * 8 > kResident) blocks = ceil_div(4 * kResident, units), each = kAtOnce;
  blocks = std::min(blocks, ceil_div(rows, below * each));
  args.tiles = FastDiv(tiles);
  args.blocks = FastDiv(blocks);
  args.width = FastDiv(width);
  args.rows = static_cast<unsigned>(rows);
  args.below = static_cast<unsigned>(below);
  args.sweep = static_cast<unsigned>(below * blocks);
  launch_kernel(op.name(), context, normalize_places<T, kForm, W>,
                static_cast<unsigned>(units * blocks), kBlock, args);
}

template <class T>
void run_normalize(const Normalize& op, const LaunchContext& context, NormalizeArgs args) {
  constexpr int W = 16 / sizeof(T);
  args.vector = is_aligned(args.x, 16) && is_aligned(args.second, 16) && is_aligned(args.out, 16);
  if (!op.channels_last) {
    args.sample = FastDiv(op.channels * op.inner);
    launch_kernel(op.name(), context, channels_kernel<T>(args, op.inner % W == 0),
                  static_cast<unsigned>(ceil_div(args.size, kBlock * W * kAtOnce)), kBlock, args);
    return;
  }
  // Single elements also where a part has so few rows that most of a block would be idle.
  if (op.channels % W != 0 || !args.vector || (args.groups && op.inner < 4)) {
    return args.second ? launch_places<T, Form::second, 1>(op, context, args)
                       : launch_places<T, Form::alone, 1>(op, context, args);
  }
  if (!args.second) return launch_places<T, Form::alone, W>(op, context, args);
  if (!args.gradient) return launch_places<T, Form::residual, W>(op, context, args);
  return args.relu ? launch_places<T, Form::masked, W>(op, context, args)
                   : launch_places<T, Form::gradient, W>(op, context, args);
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
  std::int64_t statistics = group > 0 ? channels / group * itemsize(inv_std.view.dtype) : 0;
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

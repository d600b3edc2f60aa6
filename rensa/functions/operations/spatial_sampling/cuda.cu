// Images looked at in places between their elements, on a GPU: a thread has one place, or one
// element, of several channels.
#include <algorithm>
#include <string>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/core/error.h"
#include "rensa/functions/operations/spatial_sampling/spatial_sampling.h"

namespace rensa::cuda {

namespace {

using operations::SampleMode;
using operations::SpatialSampling;

struct SampleArgs {
  const char *x, *grid, *gy;
  const long long *order, *starts;
  char* out;
  std::int64_t count;  // of places, or of elements of a channel, in all images
  std::int64_t channels, places, plane;
  std::int64_t each;  // channels of a thread
  SampleOrder by;

  template <class T>
  __device__ __forceinline__ ComputeOf<T> coordinate(std::int64_t image, std::int64_t place,
                                                     int axis) const {
    return convert<ComputeOf<T>>(
        reinterpret_cast<const T*>(grid)[(image * 2 + axis) * places + place]);
  }
};

/// Elements as they are stored, in a register each. A load that may not be made and a conversion of
/// what it gives would become one branch, which waits for each load before the next.
template <class T> using BitsOf = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>;

template <class T> __device__ __forceinline__ BitsOf<T> load_bits(const T* p) {
  using Stored = std::conditional_t<sizeof(T) == 2, unsigned short, BitsOf<T>>;
  return *reinterpret_cast<const Stored*>(p);
}
/// Called once all loads are on their way: from here on the bits are a number to the compiler.
__device__ __forceinline__ void keep(unsigned& bits) { asm("" : "+r"(bits)); }
__device__ __forceinline__ void keep(unsigned long long& bits) { asm("" : "+l"(bits)); }

template <class T> __device__ __forceinline__ ComputeOf<T> value_of(BitsOf<T> bits) {
  T element;
  memcpy(&element, &bits, sizeof(T));
  return convert<ComputeOf<T>>(element);
}

/// One place: its elements among those of a channel, and which of them are there.
template <class T> struct SamplePlace {
  using V = ComputeOf<T>;
  std::int64_t image, number;
  SampleAxis<V> y, x;
  int at[4];
  bool there[4];

  __device__ __forceinline__ SamplePlace(const SampleArgs& args, std::int64_t index)
      : image(index / args.places),
        number(index - image * args.places),
        y(args.coordinate<T>(image, number, 1), args.by.rows),
        x(args.coordinate<T>(image, number, 0), args.by.columns) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      int row = y.below - 1 + k / 2, column = x.below - 1 + k % 2;
      there[k] = row >= 0 && row < args.by.rows && column >= 0 && column < args.by.columns;
      at[k] = row * args.by.columns + column;
    }
  }
  __device__ __forceinline__ void load(const T* channel, bool wanted, BitsOf<T> (&bits)[4]) const {
#pragma unroll
    for (int k = 0; k < 4; ++k) bits[k] = there[k] && wanted ? load_bits(channel + at[k]) : 0;
  }
};

/// The values of bits that load gave.
template <class T>
__device__ __forceinline__ void get_values(const BitsOf<T> (&bits)[4], ComputeOf<T> (&v)[4]) {
#pragma unroll
  for (int k = 0; k < 4; ++k) v[k] = value_of<T>(bits[k]);
}

/// What lies at the place in P channels.
template <class T, int P>
__device__ __forceinline__ void sample_channels(const SampleArgs& args, const SamplePlace<T>& place,
                                                std::int64_t c) {
  std::int64_t channel = place.image * args.channels + c;
  const T* x = reinterpret_cast<const T*>(args.x) + channel * args.plane;
  T* out = reinterpret_cast<T*>(args.out) + channel * args.places + place.number;
  BitsOf<T> bits[P][4];
#pragma unroll
  for (int p = 0; p < P; ++p) place.load(x + p * args.plane, true, bits[p]);
#pragma unroll
  for (int i = 0; i < P * 4; ++i) keep(bits[i / 4][i % 4]);
#pragma unroll
  for (int p = 0; p < P; ++p) {
    ComputeOf<T> v[4];
    get_values<T>(bits[p], v);
    out[p * args.places] = convert<T>(sampled_between(place.y, place.x, v));
  }
}

constexpr int kChannelsAtOnce = 4;  // more take registers, and there are fewer threads for it

template <class T>
__global__ void __launch_bounds__(kBlock, 4) sample(const __grid_constant__ SampleArgs args) {
  wait_for_previous();
  std::int64_t index = blockIdx.x * static_cast<std::int64_t>(kBlock) + threadIdx.x;
  if (index >= args.count) return;
  SamplePlace<T> place(args, index);
  std::int64_t c = blockIdx.y * args.each, end = min(c + args.each, args.channels);
  for (; c + kChannelsAtOnce <= end; c += kChannelsAtOnce) {
    sample_channels<T, kChannelsAtOnce>(args, place, c);
  }
  for (; c < end; ++c) sample_channels<T, 1>(args, place, c);
}

template <class T>
__global__ void __launch_bounds__(kBlock) sample_keys(const __grid_constant__ SampleArgs args) {
  wait_for_previous();
  std::int64_t index = blockIdx.x * static_cast<std::int64_t>(kBlock) + threadIdx.x;
  if (index >= args.count) return;
  SamplePlace<T> place(args, index);
  reinterpret_cast<long long*>(args.out)[index] =
      place.y.nowhere || place.x.nowhere ? args.by.count()
                                         : args.by.key(place.image, place.y.below, place.x.below);
}

/// A warp has 32 places, and of their channels one part.
template <class T>
__global__ void __launch_bounds__(kBlock)
    sample_grid_gradient(const __grid_constant__ SampleArgs args) {
  using V = ComputeOf<T>;
  static_assert(kBlock == 32 * kSampleParts);
  constexpr int P = 4;
  __shared__ V parts[kSampleParts][2][32];
  wait_for_previous();
  int lane = threadIdx.x % 32, part = threadIdx.x / 32;
  std::int64_t index = blockIdx.x * std::int64_t{32} + lane;
  bool is_one = index < args.count;
  SamplePlace<T> place(args, is_one ? index : 0);
  V sum[2] = {};
  for (std::int64_t c = part; c < args.channels; c += P * kSampleParts) {
    std::int64_t channel = place.image * args.channels + c;
    const T* x = reinterpret_cast<const T*>(args.x) + channel * args.plane;
    const T* gy = reinterpret_cast<const T*>(args.gy) + channel * args.places + place.number;
    BitsOf<T> bits[P][4], g[P];
#pragma unroll
    for (int p = 0; p < P; ++p) {
      bool wanted = c + p * kSampleParts < args.channels;
      place.load(x + p * kSampleParts * args.plane, wanted, bits[p]);
      g[p] = wanted ? load_bits(gy + p * kSampleParts * args.places) : 0;
    }
#pragma unroll
    for (int i = 0; i < P * 4; ++i) keep(bits[i / 4][i % 4]);
#pragma unroll
    for (int p = 0; p < P; ++p) keep(g[p]);
#pragma unroll
    for (int p = 0; p < P; ++p) {
      V v[4];
      get_values<T>(bits[p], v);
      add_place_gradient(place.y, place.x, v, value_of<T>(g[p]), sum);
    }
  }
#pragma unroll
  for (int a = 0; a < 2; ++a) parts[part][a][lane] = sum[a];
  __syncthreads();
  if (part >= 2 || !is_one) return;
  V all = parts[0][part][lane];
#pragma unroll
  for (int k = 1; k < kSampleParts; ++k) all += parts[k][part][lane];
  V slope = part == 0 ? place.x.slope : place.y.slope;
  reinterpret_cast<T*>(args.out)[(place.image * 2 + part) * args.places + place.number] =
      convert<T>(all * slope);
}

template <class T>
__global__ void __launch_bounds__(kBlock)
    sample_image_gradient(const __grid_constant__ SampleArgs args) {
  using V = ComputeOf<T>;
  constexpr int P = sizeof(T) < 8 ? 16 : 8;
  wait_for_previous();
  std::int64_t index = blockIdx.x * static_cast<std::int64_t>(kBlock) + threadIdx.x;
  if (index >= args.count) return;
  std::int64_t image = index / args.plane;
  auto number = static_cast<int>(index - image * args.plane);
  int i = number / args.by.columns, j = number - i * args.by.columns;
  std::int64_t first = blockIdx.y * args.each;
  std::int64_t end = min(first + args.each, args.channels);
  for (std::int64_t c = first; c < end; c += P) {
    std::int64_t channel = image * args.channels + c;
    const T* gy = reinterpret_cast<const T*>(args.gy) + channel * args.places;
    V sum[P] = {};
    each_place_of<V>(
        args.by, image, i, j, args.order, args.starts, image * args.places,
        [&](long long place, int axis) { return args.coordinate<T>(image, place, axis); },
        [&](long long place, V weight) {
          BitsOf<T> g[P];
#pragma unroll
          for (int p = 0; p < P; ++p) {
            g[p] = c + p < end ? load_bits(gy + p * args.places + place) : 0;
          }
#pragma unroll
          for (int p = 0; p < P; ++p) keep(g[p]);
#pragma unroll
          for (int p = 0; p < P; ++p) sum[p] += weight * value_of<T>(g[p]);
        });
    T* out = reinterpret_cast<T*>(args.out) + channel * args.plane + number;
#pragma unroll
    for (int p = 0; p < P; ++p) {
      if (c + p < end) out[p * args.plane] = convert<T>(sum[p]);
    }
  }
}

// --- launches ---

template <class T> void run(const SpatialSampling& op, const LaunchContext& context) {
  SampleArgs args = {};
  args.x = op.x.view.data;
  args.grid = op.grid.view.data;
  args.gy = op.gy.view.data;
  if (op.order.present()) args.order = op.order.view.as<const long long>();
  if (op.starts.present()) args.starts = op.starts.view.as<const long long>();
  args.out = op.out.view.data;
  args.channels = op.channels;
  args.places = op.places;
  args.plane = static_cast<std::int64_t>(op.rows) * op.columns;
  args.by = op.sample_order();
  bool of_elements = op.mode == SampleMode::image_gradient;
  args.count = op.images * (of_elements ? args.plane : op.places);
  std::int64_t threads = kBlock;
  std::int64_t parts = 1;
  int multiple = 16;
  void (*kernel)(SampleArgs) = nullptr;
  switch (op.mode) {
    case SampleMode::values: kernel = sample<T>, multiple = kChannelsAtOnce; break;
    case SampleMode::keys: kernel = sample_keys<T>; break;
    case SampleMode::grid_gradient: kernel = sample_grid_gradient<T>, threads = 32; break;
    case SampleMode::image_gradient: kernel = sample_image_gradient<T>; break;
  }
  std::int64_t blocks = ceil_div(args.count, threads);
  if (blocks > kMaxCount || args.plane > kMaxCount) {
    throw NotImplementedError(std::string(op.name()) + ": " + std::to_string(args.count) +
                              " places are too many for one kernel");
  }
  if (op.mode == SampleMode::values || of_elements) {
    std::int64_t many = of_elements ? 1 << 13 : 1 << 12;  // blocks, where there is work for them
    parts = std::clamp<std::int64_t>(many / blocks, 1, ceil_div(op.channels, multiple));
    args.each = ceil_div(ceil_div(op.channels, parts), multiple) * multiple;
    parts = ceil_div(op.channels, args.each);
  }
  dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(parts));
  launch_kernel(op.name(), context, kernel, grid, kBlock, args);
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

void SpatialSampling::run_cuda(const cuda::LaunchContext& context) {
  if (out.view.size() == 0) return;
  switch (grid.view.dtype) {
    case Dtype::float16: return cuda::run<half_t>(*this, context);
    case Dtype::bfloat16: return cuda::run<bfloat16_t>(*this, context);
    case Dtype::float32: return cuda::run<float>(*this, context);
    default: return cuda::run<double>(*this, context);
  }
}

}  // namespace rensa::operations

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
  __device__ __forceinline__ void load(const T* channel, bool wanted, V (&v)[4]) const {
#pragma unroll
    for (int k = 0; k < 4; ++k) v[k] = there[k] && wanted ? convert<V>(channel[at[k]]) : V(0);
  }
};

template <class T>
__global__ void __launch_bounds__(kBlock) sample(const __grid_constant__ SampleArgs args) {
  using V = ComputeOf<T>;
  constexpr int P = sizeof(T) < 8 ? 8 : 4;
  wait_for_previous();
  std::int64_t index = blockIdx.x * static_cast<std::int64_t>(kBlock) + threadIdx.x;
  if (index >= args.count) return;
  SamplePlace<T> place(args, index);
  std::int64_t first = blockIdx.y * args.each;
  std::int64_t end = min(first + args.each, args.channels);
  for (std::int64_t c = first; c < end; c += P) {
    std::int64_t channel = place.image * args.channels + c;
    const T* x = reinterpret_cast<const T*>(args.x) + channel * args.plane;
    V v[P][4];
#pragma unroll
    for (int p = 0; p < P; ++p) place.load(x + p * args.plane, c + p < end, v[p]);
    T* out = reinterpret_cast<T*>(args.out) + channel * args.places + place.number;
#pragma unroll
    for (int p = 0; p < P; ++p) {
      if (c + p < end) out[p * args.places] = convert<T>(sampled_between(place.y, place.x, v[p]));
    }
  }
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
    V v[P][4], g[P];
#pragma unroll
    for (int p = 0; p < P; ++p) {
      bool wanted = c + p * kSampleParts < args.channels;
      place.load(x + p * kSampleParts * args.plane, wanted, v[p]);
      g[p] = wanted ? convert<V>(gy[p * kSampleParts * args.places]) : V(0);
    }
#pragma unroll
    for (int p = 0; p < P; ++p) add_place_gradient(place.y, place.x, v[p], g[p], sum);
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
          V g[P];
#pragma unroll
          for (int p = 0; p < P; ++p) {
            g[p] = c + p < end ? convert<V>(gy[p * args.places + place]) : V(0);
          }
#pragma unroll
          for (int p = 0; p < P; ++p) sum[p] += weight * g[p];
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
    case SampleMode::values: kernel = sample<T>, multiple = 8; break;
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
    constexpr std::int64_t kBlocks = 1 << 13;  // where there is work for them
    parts = std::clamp<std::int64_t>(kBlocks / blocks, 1, ceil_div(op.channels, multiple));
    args.each = ceil_div(ceil_div(op.channels, parts), multiple) * multiple;
    parts = ceil_div(op.channels, args.each);
  }
  dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(parts));
  launch_overlapped(op.name(), context, kernel, grid, kBlock, args);
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

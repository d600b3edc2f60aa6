// Images resized on a GPU: a thread has one pixel, or one element, of several images.
#include <algorithm>
#include <string>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/core/error.h"
#include "rensa/functions/operations/resize/resize.h"

namespace rensa::cuda {

namespace {

using operations::Resize;
using operations::ResizeShape;
using operations::ResizeSpread;

struct ResizeArgs {
  const char* in;
  char* out;
  ResizeAxis rows, columns;
  FastDiv vectors, extent;           // of a place; places of a row
  unsigned count;                    // vectors of an image
  std::int64_t outer, each;          // images; images of a thread
  std::int64_t in_image, out_image;  // elements
  std::int64_t inner;
};

/// Images that a thread has at once.
template <class T, int W> constexpr int kImages = W > 1 ? 2 : sizeof(T) < 8 ? 8 : 4;

/// Where a thread is in an image.
struct ResizePlace {
  int row, column;
  unsigned vector;
  __device__ __forceinline__ ResizePlace(const ResizeArgs& args, unsigned index) {
    unsigned place = args.vectors.divide(index);
    vector = index - place * args.vectors.divisor;
    unsigned quotient = args.extent.divide(place);
    column = static_cast<int>(place - quotient * args.extent.divisor);
    row = static_cast<int>(quotient);
  }
};

/// Calls f(first, most) for the images that a thread has: kImages at a time from the first on, of
/// which those past `most` are none.
template <int P, class F>
__device__ __forceinline__ void each_images(const ResizeArgs& args, const F& f) {
  std::int64_t begin = blockIdx.y * args.each;
  std::int64_t end = begin + args.each < args.outer ? begin + args.each : args.outer;
  for (std::int64_t image = begin; image < end; image += P) {
    f(image, static_cast<int>(end - image < P ? end - image : P) - 1);
  }
}

template <class T, int W, bool kLinear>
__global__ void __launch_bounds__(kBlock) resize(const __grid_constant__ ResizeArgs args) {
  using V = ComputeOf<T>;
  constexpr int P = kImages<T, W>, N = kLinear ? 4 : 1;
  wait_for_previous();
  unsigned index = blockIdx.x * static_cast<unsigned>(kBlock) + threadIdx.x;
  if (index >= args.count) return;
  ResizePlace place(args, index);
  ResizeTap<V> y = args.rows.tap<V>(place.row), x = args.columns.tap<V>(place.column);
  std::int64_t at[N];
#pragma unroll
  for (int n = 0; n < N; ++n) {
    at[n] = (static_cast<std::int64_t>(y.at[n / 2]) * args.columns.in + x.at[n % 2]) * args.inner +
            place.vector * W;
  }
  each_images<P>(args, [&](std::int64_t image, int most) {
    const T* in = reinterpret_cast<const T*>(args.in) + image * args.in_image;
    T* out = reinterpret_cast<T*>(args.out) + image * args.out_image +
             static_cast<std::int64_t>(index) * W;
    Pack<T, W> taps[P][N];
#pragma unroll
    for (int p = 0; p < P; ++p) {
      const T* from = in + min(p, most) * args.in_image;
#pragma unroll
      for (int n = 0; n < N; ++n) taps[p][n] = *reinterpret_cast<const Pack<T, W>*>(from + at[n]);
    }
#pragma unroll
    for (int p = 0; p < P; ++p) {
      Pack<T, W> pack;
#pragma unroll
      for (int j = 0; j < W; ++j) {
        if constexpr (kLinear) {
          V v[N];
#pragma unroll
          for (int n = 0; n < N; ++n) v[n] = convert<V>(taps[p][n].value[j]);
          pack.value[j] = convert<T>(resized_between(y, x, v));
        } else {
          pack.value[j] = taps[p][0].value[j];
        }
      }
      if (p <= most) *reinterpret_cast<Pack<T, W>*>(out + p * args.out_image) = pack;
    }
  });
}

template <class T, int W>
__global__ void __launch_bounds__(kBlock) resize_spread(const __grid_constant__ ResizeArgs args) {
  using V = ComputeOf<T>;
  constexpr int P = kImages<T, W>;
  wait_for_previous();
  unsigned index = blockIdx.x * static_cast<unsigned>(kBlock) + threadIdx.x;
  if (index >= args.count) return;
  ResizePlace place(args, index);
  each_images<P>(args, [&](std::int64_t image, int most) {
    const T* in = reinterpret_cast<const T*>(args.in) + image * args.in_image + place.vector * W;
    T* out = reinterpret_cast<T*>(args.out) + image * args.out_image +
             static_cast<std::int64_t>(index) * W;
    auto load = [&](int row, int column, bool there, V(&values)[P * W]) {
      std::int64_t at = (static_cast<std::int64_t>(row) * args.columns.out + column) * args.inner;
#pragma unroll
      for (int p = 0; p < P; ++p) {
        Pack<T, W> pack = {};
        if (there) {
          pack = *reinterpret_cast<const Pack<T, W>*>(in + min(p, most) * args.in_image + at);
        }
#pragma unroll
        for (int j = 0; j < W; ++j) values[p * W + j] = convert<V>(pack.value[j]);
      }
    };
    V sum[P * W];
    resize_gradient(args.rows, args.columns, place.row, place.column, load, sum);
#pragma unroll
    for (int p = 0; p < P; ++p) {
      Pack<T, W> pack;
#pragma unroll
      for (int j = 0; j < W; ++j) pack.value[j] = convert<T>(sum[p * W + j]);
      if (p <= most) *reinterpret_cast<Pack<T, W>*>(out + p * args.out_image) = pack;
    }
  });
}

// --- launches ---

template <class T, int W>
void launch_on(const char* name, const LaunchContext& context, const ResizeShape& s, bool forward,
               const char* in, char* out) {
  constexpr int P = kImages<T, W>;
  constexpr std::int64_t kBlocks = 1 << 14;  // where there is work for them
  std::int64_t rows = forward ? s.rows.out : s.rows.in;
  std::int64_t columns = forward ? s.columns.out : s.columns.in;
  std::int64_t vectors = s.inner / W;
  if (rows > kMaxCount / columns || rows * columns > kMaxCount / vectors) {
    throw NotImplementedError(std::string(name) + ": images of " + std::to_string(rows) + " * " +
                              std::to_string(columns) + " * " + std::to_string(s.inner) +
                              " elements are too large for one kernel");
  }
  ResizeArgs args = {};
  args.in = in;
  args.out = out;
  args.rows = s.rows;
  args.columns = s.columns;
  args.vectors = FastDiv(vectors);
  args.extent = FastDiv(columns);
  args.count = static_cast<unsigned>(rows * columns * vectors);
  args.outer = s.outer;
  args.inner = s.inner;
  args.in_image = (forward ? std::int64_t{s.rows.in} * s.columns.in
                           : std::int64_t{s.rows.out} * s.columns.out) *
                  s.inner;
  args.out_image = rows * columns * s.inner;
  std::int64_t blocks = ceil_div(static_cast<std::int64_t>(args.count), kBlock);
  std::int64_t parts = std::clamp<std::int64_t>(kBlocks / blocks, 1, ceil_div(s.outer, P));
  args.each = ceil_div(ceil_div(s.outer, parts), P) * P;
  dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(ceil_div(s.outer, args.each)));
  void (*kernel)(ResizeArgs) = resize_spread<T, W>;
  if (forward) kernel = s.columns.linear ? resize<T, W, true> : resize<T, W, false>;
  launch_kernel(name, context, kernel, grid, kBlock, args);
}

void launch_any(const char* name, const LaunchContext& context, const ResizeShape& s, bool forward,
                const ArrayView& in, const ArrayView& out) {
  auto on = [&](auto element) {
    using T = decltype(element);
    constexpr int W = 16 / sizeof(T);
    bool vector = s.inner % W == 0 && is_aligned(in.data, 16) && is_aligned(out.data, 16);
    auto launch = vector ? launch_on<T, W> : launch_on<T, 1>;
    launch(name, context, s, forward, in.data, out.data);
  };
  switch (out.dtype) {
    case Dtype::float16: return on(half_t());
    case Dtype::bfloat16: return on(bfloat16_t());
    case Dtype::float32: return on(float());
    default: return on(double());
  }
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

void Resize::run_cuda(const cuda::LaunchContext& context) {
  if (y.view.size() > 0) cuda::launch_any(name(), context, shape, true, x.view, y.view);
}

void ResizeSpread::run_cuda(const cuda::LaunchContext& context) {
  if (gx.view.size() > 0) cuda::launch_any(name(), context, shape, false, gy.view, gx.view);
}

}  // namespace rensa::operations

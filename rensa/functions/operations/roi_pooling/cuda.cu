// Pooling of regions of interest on a GPU: a thread has a bin, or an element, which asks the bins.
#include <string>

#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/core/error.h"
#include "rensa/functions/operations/roi_pooling/roi_pooling.h"

namespace rensa::cuda {

namespace {

using operations::RoiBins;
using operations::RoiMode;
using operations::RoiPooling;
using operations::RoiPoolingSpread;

struct RoiArgs {
  const char* in;
  char* out;
  const double* rois;
  const long long* images;
  long long* numbers;
  std::int64_t count;  // of what threads have one of
  std::int64_t n, channels, rows, columns;
  std::int64_t rois_in_all;
  int out_rows, out_columns, samples[2];
  RoiLook look;
  double of_none;
  ErrorSink errors;

  __device__ __forceinline__ RoiAxis y(std::int64_t r) const {
    return {look, rois[r * 4], rois[r * 4 + 2], rows, out_rows, samples[0]};
  }
  __device__ __forceinline__ RoiAxis x(std::int64_t r) const {
    return {look, rois[r * 4 + 1], rois[r * 4 + 3], columns, out_columns, samples[1]};
  }
};

template <class T, RoiMode kMode>
__global__ void __launch_bounds__(kBlock) roi_pool(const __grid_constant__ RoiArgs args) {
  wait_for_previous();
  using V = ComputeOf<T>;
  std::int64_t index = blockIdx.x * static_cast<std::int64_t>(kBlock) + threadIdx.x;
  if (index >= args.count) return;
  auto column = static_cast<int>(index % args.out_columns);
  std::int64_t rest = index / args.out_columns;
  auto row = static_cast<int>(rest % args.out_rows);
  rest /= args.out_rows;
  std::int64_t r = rest / args.channels, c = rest % args.channels;
  long long image = args.images[r];
  if (image < 0 || image >= args.n) {
    args.errors.report(ReportedError::index, image, args.n);
    if constexpr (kMode == RoiMode::max) args.numbers[index] = -1;
    return;
  }
  const T* from =
      reinterpret_cast<const T*>(args.in) + (image * args.channels + c) * args.rows * args.columns;
  auto load = [&](long long i, long long j) { return convert<V>(from[i * args.columns + j]); };
  RoiAxis y = args.y(r), x = args.x(r);
  V result = V(0);
  if constexpr (kMode == RoiMode::mean) {
    result = mean_of_bin<V>(y, x, row, column, load);
  } else if constexpr (kMode == RoiMode::max) {
    long long number;
    result = greatest_of_bin<V>(y, x, row, column, V(args.of_none), load, &number);
    args.numbers[index] = number;
  } else {
    long long at = args.numbers[index];
    if (at >= 0)
      result = value_at_taps<V>(y.tap(row, at / x.grid), x.tap(column, at % x.grid), load);
  }
  reinterpret_cast<T*>(args.out)[index] = convert<T>(result);
}

// What the bins of roi r give to the element (i, j) of an image, added to `sum`.
template <class T, bool kAt, class V>
__device__ __forceinline__ void add_roi(const RoiArgs& args, std::int64_t r, std::int64_t c,
                                        long long i, long long j, V* sum) {
  RoiAxis y = args.y(r), x = args.x(r);
  std::int64_t first = (r * args.channels + c) * args.out_rows * args.out_columns;
  const T* gy = reinterpret_cast<const T*>(args.in) + first;
  for (int row = 0; row < args.out_rows; ++row) {
    RoiRange rows = y.taps_near(row, i);
    if (rows.empty()) continue;
    if constexpr (kAt) {
      for (int column = 0; column < args.out_columns; ++column) {
        if (x.taps_near(column, j).empty()) continue;
        int bin = row * args.out_columns + column;
        long long at = args.numbers[first + bin];
        if (at < 0) continue;
        double weight = y.tap(row, at / x.grid).weight_of(i);
        if (weight > 0) weight *= x.tap(column, at % x.grid).weight_of(j);
        if (weight > 0) *sum += V(weight / 1) * convert<V>(gy[bin]);
      }
    } else {
      for (long long k = rows.begin; k < rows.end; ++k) {
        double of_row = y.tap(row, k).weight_of(i);
        if (!(of_row > 0)) continue;
        for (int column = 0; column < args.out_columns; ++column) {
          RoiRange columns = x.taps_near(column, j);
          if (columns.empty()) continue;
          double count = y.count(row) * x.count(column);
          V g = convert<V>(gy[row * args.out_columns + column]);
          for (long long l = columns.begin; l < columns.end; ++l) {
            double weight = of_row * x.tap(column, l).weight_of(j);
            if (weight > 0) *sum += V(weight / count) * g;
          }
        }
      }
    }
  }
}

template <class T, bool kAt>
__global__ void __launch_bounds__(kBlock) roi_spread(const __grid_constant__ RoiArgs args) {
  wait_for_previous();
  using V = ComputeOf<T>;
  std::int64_t index = blockIdx.x * static_cast<std::int64_t>(kBlock) + threadIdx.x;
  if (index >= args.count) return;
  long long j = index % args.columns;
  std::int64_t rest = index / args.columns;
  long long i = rest % args.rows;
  rest /= args.rows;
  std::int64_t n = rest / args.channels, c = rest % args.channels;
  V sum = V(0);
  for (std::int64_t r = 0; r < args.rois_in_all; ++r) {
    if (args.images[r] == n) add_roi<T, kAt>(args, r, c, i, j, &sum);
  }
  reinterpret_cast<T*>(args.out)[index] = convert<T>(sum);
}

RoiArgs arguments_of(const char* name, const RoiBins& bins, const Operand& rois,
                     const Operand& images, const Operand& numbers, const Shape& image,
                     const Shape& out, std::int64_t count) {
  if (ceil_div(count, kBlock) > kMaxCount) {
    throw NotImplementedError(std::string(name) + ": " + std::to_string(count) +
                              " elements are too many for one kernel");
  }
  RoiArgs args = {};
  args.rois = rois.view.as<const double>();
  args.images = images.view.as<const long long>();
  if (numbers.present()) args.numbers = numbers.view.as<long long>();
  args.count = count;
  args.n = image[0];
  args.channels = image[1];
  args.rows = image[2];
  args.columns = image[3];
  args.rois_in_all = out[0];
  args.out_rows = static_cast<int>(out[2]);
  args.out_columns = static_cast<int>(out[3]);
  for (int a = 0; a < 2; ++a) args.samples[a] = bins.samples[a];
  args.look = bins.look;
  args.of_none = bins.of_none;
  return args;
}

using RoiKernel = void (*)(RoiArgs);

template <class T> RoiKernel pooling_kernel(RoiMode mode) {
  switch (mode) {
    case RoiMode::mean: return roi_pool<T, RoiMode::mean>;
    case RoiMode::max: return roi_pool<T, RoiMode::max>;
    default: return roi_pool<T, RoiMode::at>;
  }
}
template <class T> RoiKernel spreading_kernel(RoiMode mode) {
  return mode == RoiMode::at ? roi_spread<T, true> : roi_spread<T, false>;
}

template <class F> RoiKernel of_dtype(Dtype dtype, const F& f) {
  switch (dtype) {
    case Dtype::float16: return f(half_t());
    case Dtype::bfloat16: return f(bfloat16_t());
    case Dtype::float32: return f(float());
    default: return f(double());
  }
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

void RoiPooling::run_cuda(const cuda::LaunchContext& context) {
  if (y.view.size() == 0) return;
  cuda::RoiArgs args = cuda::arguments_of(name(), bins, rois, images, numbers, x.view.shape,
                                          y.view.shape, y.view.size());
  args.in = x.view.data;
  args.out = y.view.data;
  args.errors = cuda::ErrorSink(name(), context);
  auto kernel = cuda::of_dtype(x.view.dtype, [&](auto element) {
    return cuda::pooling_kernel<decltype(element)>(bins.mode);
  });
  cuda::launch_kernel(name(), context, kernel,
                      static_cast<unsigned>(ceil_div(args.count, cuda::kBlock)), cuda::kBlock,
                      args);
}

void RoiPoolingSpread::run_cuda(const cuda::LaunchContext& context) {
  if (gx.view.size() == 0) return;
  cuda::RoiArgs args = cuda::arguments_of(name(), bins, rois, images, numbers, gx.view.shape,
                                          gy.view.shape, gx.view.size());
  args.in = gy.view.data;
  args.out = gx.view.data;
  auto kernel = cuda::of_dtype(gy.view.dtype, [&](auto element) {
    return cuda::spreading_kernel<decltype(element)>(bins.mode);
  });
  cuda::launch_kernel(name(), context, kernel,
                      static_cast<unsigned>(ceil_div(args.count, cuda::kBlock)), cuda::kBlock,
                      args);
}

}  // namespace rensa::operations

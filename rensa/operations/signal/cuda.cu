// Correlation and interpolation on a GPU.
#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/core/interpolation.h"
#include "rensa/operations/signal/signal.h"

namespace rensa::cuda {

namespace {

// --- correlation ---

// A block makes kBlock * kOutputs sums; it walks over the taps kBlock at a time, which it keeps in
// shared memory together with the elements that they meet.
constexpr int kOutputs = 4;
constexpr int kSums = kBlock * kOutputs;

struct CorrelateArgs {
  const char* in;
  const char* taps;
  char* out;
  std::int64_t in_stride, taps_stride, out_stride;
  std::int64_t size, count, outputs, offset;  // of in, taps and out
  ElementType in_type, taps_type;
  Dtype out_dtype;
};

template <class V>
__global__ void __launch_bounds__(kBlock) correlate(const __grid_constant__ CorrelateArgs args) {
  wait_for_previous();
  // V may have a constructor, which shared memory cannot run.
  __shared__ alignas(16) char in_bytes[(kSums + kBlock) * sizeof(V)];
  __shared__ alignas(16) char tap_bytes[kBlock * sizeof(V)];
  V* in = reinterpret_cast<V*>(in_bytes);
  V* taps = reinterpret_cast<V*>(tap_bytes);
  std::int64_t first = blockIdx.x * static_cast<std::int64_t>(kSums);
  bool inner = first >= args.offset && first + kSums + args.count - args.offset <= args.size;
  V sums[kOutputs];
#pragma unroll
  for (int k = 0; k < kOutputs; ++k) sums[k] = V(0);
  for (std::int64_t tap = 0; tap < args.count; tap += kBlock) {
    __syncthreads();
    for (int i = threadIdx.x; i < kSums + kBlock; i += kBlock) {
      std::int64_t at = first + tap + i - args.offset;
      bool inside = at >= 0 && at < args.size;
      in[i] = inside ? load_any<V>(args.in + at * args.in_stride, args.in_type) : V(0);
    }
    std::int64_t at = tap + threadIdx.x;
    taps[threadIdx.x] =
        at < args.count ? load_any<V>(args.taps + at * args.taps_stride, args.taps_type) : V(0);
    __syncthreads();
    int left = args.count - tap < kBlock ? static_cast<int>(args.count - tap) : kBlock;
    if (inner) {
      for (int j = 0; j < left; ++j) {
        V weight = taps[j];
#pragma unroll
        for (int k = 0; k < kOutputs; ++k) {
          sums[k] = sums[k] + in[threadIdx.x + k * kBlock + j] * weight;
        }
      }
      continue;
    }
    // What lies beside the elements is left out: as a zero, times NaN, it would be NaN.
    std::int64_t start = args.offset - first - tap;
    for (int j = 0; j < left; ++j) {
      V weight = taps[j];
#pragma unroll
      for (int k = 0; k < kOutputs; ++k) {
        int i = threadIdx.x + k * kBlock + j;
        if (i >= start && i - start < args.size) sums[k] = sums[k] + in[i] * weight;
      }
    }
  }
#pragma unroll
  for (int k = 0; k < kOutputs; ++k) {
    std::int64_t i = first + threadIdx.x + k * kBlock;
    if (i < args.outputs) store_any<V>(args.out + i * args.out_stride, args.out_dtype, sums[k]);
  }
}

template <class V>
void launch_correlate(const operations::Correlate& op, const LaunchContext& context,
                      ComputeType type) {
  const ArrayView &in = op.in.view, &taps = op.taps.view, &out = op.out.view;
  CorrelateArgs args = {};
  args.in = in.data;
  args.taps = taps.data;
  args.out = out.data;
  args.in_stride = in.strides[0];
  args.taps_stride = taps.strides[0];
  args.out_stride = out.strides[0];
  args.size = in.size();
  args.count = taps.size();
  args.outputs = out.size();
  args.offset = op.offset;
  args.in_type = ElementType(in.dtype, type, false);
  args.taps_type = ElementType(taps.dtype, type, false);
  args.out_dtype = out.dtype;
  launch_kernel(op.name(), context, correlate<V>, ceil_div(args.outputs, kSums), kBlock, args);
}

// --- interpolation ---

struct InterpolateArgs {
  const double* x;
  const double* points;
  const double* values;
  double* out;
  std::int64_t size, count, width;
  bool has_before, has_after;
  double before[2], after[2];
};

__global__ void __launch_bounds__(kBlock)
    interpolate_points(const __grid_constant__ InterpolateArgs args) {
  wait_for_previous();
  std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kBlock) + threadIdx.x;
  if (i >= args.size) return;
  double x = args.x[i];
  long long n = args.count, width = args.width;
  bool nan = x != x && n > 1;  // one point has one value
  long long k = nan ? 0 : find_interval(args.points, n, x);
  for (int c = 0; c < width; ++c) {
    double value;
    if (nan) value = c == 0 ? x : 0;
    else if (k < 0) value = args.has_before ? args.before[c] : args.values[c];
    else if (k == n) value = args.has_after ? args.after[c] : args.values[(n - 1) * width + c];
    else value = interpolate(args.points, args.values + c, n, width, k, x);
    args.out[i * width + c] = value;
  }
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

void Correlate::run_cuda(const cuda::LaunchContext& context) {
  ComputeType type = compute_type(compute);
  switch (type) {
    case ComputeType::i64: return cuda::launch_correlate<long long>(*this, context, type);
    case ComputeType::u64: return cuda::launch_correlate<unsigned long long>(*this, context, type);
    case ComputeType::f32: return cuda::launch_correlate<float>(*this, context, type);
    case ComputeType::f64: return cuda::launch_correlate<double>(*this, context, type);
    case ComputeType::c64: return cuda::launch_correlate<complex_t<float>>(*this, context, type);
    case ComputeType::c128: return cuda::launch_correlate<complex_t<double>>(*this, context, type);
  }
}

void Interpolate::run_cuda(const cuda::LaunchContext& context) {
  cuda::InterpolateArgs args = {};
  args.x = x.view.as<const double>();
  args.points = points.view.as<const double>();
  args.values = values.view.as<const double>();
  args.out = out.view.as<double>();
  args.size = x.view.size();
  args.count = points.view.size();
  args.width = dtype_kind(out.view.dtype) == 'c' ? 2 : 1;
  args.has_before = has_before;
  args.has_after = has_after;
  args.before[0] = before.real();
  args.before[1] = before.imag();
  args.after[0] = after.real();
  args.after[1] = after.imag();
  std::int64_t grid = ceil_div(args.size, cuda::kBlock);
  cuda::launch_kernel(name(), context, cuda::interpolate_points, grid, cuda::kBlock, args);
}

}  // namespace rensa::operations

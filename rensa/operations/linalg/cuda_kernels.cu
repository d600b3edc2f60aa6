// The kernels around the factorizations.
#include "rensa/operations/linalg/cuda_kernels.h"

#include "rensa/backend/cuda/kernel.cuh"

namespace rensa::cuda {

namespace {

using operations::MatrixContent;

struct PointersArgs {
  char* base;
  std::int64_t stride, count;
  void** pointers;
};

__global__ void __launch_bounds__(kBlock)
    batch_pointers(const __grid_constant__ PointersArgs args) {
  wait_for_previous();
  std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kBlock) + threadIdx.x;
  if (i < args.count) args.pointers[i] = args.base + i * args.stride;
}

// By one block: the first of `count` matrices that is bad.
template <class IsBad>
__device__ void report_first(const ErrorSink& errors, ReportedError error, std::int64_t count,
                             IsBad is_bad) {
  __shared__ unsigned long long first;
  constexpr unsigned long long kNone = ~0ull;
  if (threadIdx.x == 0) first = kNone;
  __syncthreads();
  for (std::int64_t i = threadIdx.x; i < count; i += kBlock) {
    if (!is_bad(i)) continue;
    atomicMin(&first, static_cast<unsigned long long>(i));
    break;
  }
  __syncthreads();
  if (threadIdx.x == 0 && first != kNone)
    errors.report(error, static_cast<long long>(first), count);
}

struct InfoArgs {
  const int* info;
  const int* contents;
  int bad;
  std::int64_t count;
  ReportedError error;
  ErrorSink errors;
};

__global__ void __launch_bounds__(kBlock) check_info(const __grid_constant__ InfoArgs args) {
  wait_for_previous();
  report_first(args.errors, args.error, args.count, [&](std::int64_t i) {
    return (args.info && args.info[i] != 0) || (args.contents && args.contents[i] >= args.bad);
  });
}

constexpr int kElementsPerThread = 16;

// A matrix of T, complex numbers as pairs, is shared out over `blocks` blocks.
template <class T> struct MatrixArgs {
  T* data;
  std::int64_t rows, columns, width, blocks;
  MatrixPart part;
  int* contents;
  T value;

  __device__ std::int64_t size() const { return rows * columns * width; }
};

// Calls f(i) for the calling block's elements.
template <class T, class F> __device__ void for_each_element(const MatrixArgs<T>& args, F f) {
  std::int64_t block = blockIdx.x % args.blocks;
  for (std::int64_t i = block * kBlock + threadIdx.x; i < args.size(); i += args.blocks * kBlock) {
    f(i);
  }
}

template <class T>
__global__ void __launch_bounds__(kBlock) look(const __grid_constant__ MatrixArgs<T> args) {
  wait_for_previous();
  std::int64_t matrix = blockIdx.x / args.blocks;
  const T* values = args.data + matrix * args.size();
  int worst = static_cast<int>(MatrixContent::finite);
  for_each_element(args, [&](std::int64_t i) {
    std::int64_t row = i / args.width % args.rows, column = i / args.width / args.rows;
    if (args.part == MatrixPart::upper && row > column) return;
    if (args.part == MatrixPart::lower && row < column) return;
    T value = values[i];
    int content = static_cast<int>(value != value     ? MatrixContent::nan
                                   : !isfinite(value) ? MatrixContent::infinite
                                                      : MatrixContent::finite);
    worst = content > worst ? content : worst;
  });
  if (worst != static_cast<int>(MatrixContent::finite)) atomicMax(args.contents + matrix, worst);
}

template <class T>
__global__ void __launch_bounds__(kBlock) fill_marked(const __grid_constant__ MatrixArgs<T> args) {
  wait_for_previous();
  std::int64_t matrix = blockIdx.x / args.blocks;
  if (args.contents[matrix] == static_cast<int>(MatrixContent::finite)) return;
  T* values = args.data + matrix * args.size();
  for_each_element(args, [&](std::int64_t i) { values[i] = args.value; });
}

template <class T>
MatrixArgs<T> matrix_args(const MatrixBatch& matrices, MatrixPart part, int* contents, T value) {
  MatrixArgs<T> args{};
  args.data = static_cast<T*>(matrices.data);
  args.rows = matrices.rows;
  args.columns = matrices.columns;
  args.width = dtype_kind(matrices.dtype) == 'c' ? 2 : 1;
  std::int64_t size = args.rows * args.columns * args.width;
  args.blocks = std::max<std::int64_t>(1, ceil_div(size, kBlock * kElementsPerThread));
  args.part = part;
  args.contents = contents;
  args.value = value;
  return args;
}

bool is_single(Dtype dtype) { return dtype == Dtype::float32 || dtype == Dtype::complex64; }

}  // namespace

void launch_batch_pointers(const char* operation, const LaunchContext& context, void* base,
                           std::int64_t stride, std::int64_t count, void** pointers) {
  PointersArgs args{static_cast<char*>(base), stride, count, pointers};
  launch_kernel(operation, context, batch_pointers, ceil_div(count, kBlock), kBlock, args);
}

void launch_look(const char* operation, const LaunchContext& context, const MatrixBatch& matrices,
                 MatrixPart part, int* contents) {
  auto launch = [&](auto zero, auto kernel) {
    auto args = matrix_args(matrices, part, contents, zero);
    launch_kernel(operation, context, kernel, args.blocks * matrices.count, kBlock, args);
  };
  if (is_single(matrices.dtype)) launch(0.f, look<float>);
  else launch(0.0, look<double>);
}

void launch_fill_marked(const char* operation, const LaunchContext& context, int* contents,
                        const MatrixBatch& matrices, double value) {
  auto launch = [&](auto number, auto kernel) {
    auto args = matrix_args(matrices, MatrixPart::all, contents, number);
    launch_kernel(operation, context, kernel, args.blocks * matrices.count, kBlock, args);
  };
  if (is_single(matrices.dtype)) launch(static_cast<float>(value), fill_marked<float>);
  else launch(value, fill_marked<double>);
}

void launch_check_info(const char* operation, const LaunchContext& context, ReportedError error,
                       const int* info, std::int64_t count) {
  launch_check_contents(operation, context, error, info, nullptr, MatrixContent::nan, count);
}

void launch_check_contents(const char* operation, const LaunchContext& context, ReportedError error,
                           const int* info, const int* contents, MatrixContent bad,
                           std::int64_t count) {
  InfoArgs args{};
  args.info = info;
  args.contents = contents;
  args.bad = static_cast<int>(bad);
  args.count = count;
  args.error = error;
  args.errors = ErrorSink(operation, context);
  launch_kernel(operation, context, check_info, 1, kBlock, args);
}

}  // namespace rensa::cuda

// The kernels around the factorizations.
#include "rensa/backend/cuda/linalg_kernels.h"

#include "rensa/backend/cuda/kernel.cuh"

namespace rensa::cuda {

namespace {

struct PointersArgs {
  char* base;
  std::int64_t stride, count;
  void** pointers;
};

__global__ void __launch_bounds__(kBlock)
    batch_pointers(const __grid_constant__ PointersArgs args) {
  std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kBlock) + threadIdx.x;
  if (i < args.count) args.pointers[i] = args.base + i * args.stride;
}

// By one block: the first of `count` matrices that is bad.
template <class IsBad>
__device__ void report_first(const ErrorSink& errors, std::int64_t count, IsBad is_bad) {
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
  if (threadIdx.x == 0 && first != kNone) errors.report(static_cast<long long>(first), count);
}

struct InfoArgs {
  const int* info;
  std::int64_t count;
  ErrorSink errors;
};

__global__ void __launch_bounds__(kBlock) check_info(const __grid_constant__ InfoArgs args) {
  report_first(args.errors, args.count, [&](std::int64_t i) { return args.info[i] != 0; });
}

struct ValuesArgs {
  const void* values;
  std::int64_t n, count;
  ErrorSink errors;
};

template <class T>
__global__ void __launch_bounds__(kBlock) check_values(const __grid_constant__ ValuesArgs args) {
  report_first(args.errors, args.count, [&](std::int64_t i) {
    const T* values = static_cast<const T*>(args.values) + i * args.n;
    return !isfinite(values[0]) || !isfinite(values[args.n - 1]);
  });
}

}  // namespace

void launch_batch_pointers(const char* operation, const LaunchContext& context, void* base,
                           std::int64_t stride, std::int64_t count, void** pointers) {
  PointersArgs args{static_cast<char*>(base), stride, count, pointers};
  launch_kernel(operation, context, batch_pointers, ceil_div(count, kBlock), kBlock, args);
}

void launch_check_info(const char* operation, const LaunchContext& context, const int* info,
                       std::int64_t count) {
  InfoArgs args{};
  args.info = info;
  args.count = count;
  args.errors = {static_cast<ErrorWord*>(context.error_word), error_operation(operation)};
  launch_kernel(operation, context, check_info, 1, kBlock, args);
}

void launch_check_values(const char* operation, const LaunchContext& context, const void* values,
                         bool wide, std::int64_t n, std::int64_t count) {
  ValuesArgs args{};
  args.values = values;
  args.n = n;
  args.count = count;
  args.errors = {static_cast<ErrorWord*>(context.error_word), error_operation(operation)};
  auto kernel = wide ? check_values<double> : check_values<float>;
  launch_kernel(operation, context, kernel, 1, kBlock, args);
}

}  // namespace rensa::cuda

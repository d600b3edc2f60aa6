// Softmax cross entropy and its gradient on a GPU.
#include <algorithm>

#include "rensa/backend/cuda/group.cuh"
#include "rensa/core/reduction_functors.h"
#include "rensa/functions/operations/softmax_cross_entropy/cuda_class_rows.cuh"
#include "rensa/functions/operations/softmax_cross_entropy/softmax_cross_entropy.h"

namespace rensa {

namespace cuda {

namespace {

struct LossArgs {
  const char *x, *t;
  char *y, *loss, *count;
  Dtype label_dtype, loss_dtype, count_dtype;
  std::int64_t label_size;
  std::int64_t rows, classes;
  long long ignore_label;
  bool normalize;
  int group;
  void* workspace;
  unsigned* semaphores;
  ErrorSink errors;
};

constexpr int kCached = 4;  // elements of a row that a thread keeps; what is beyond is read again

// y = log softmax of one row; gives what the row adds to the loss in the thread that has the
// label's element. A group's threads call it together; those of rows that are not there with no
// classes.
template <class T, class V>
__device__ __forceinline__ V log_softmax(const T* x, T* y, std::int64_t classes, long long label,
                                         int lane, int group) {
  V cached[kCached];
  V greatest = m::lowest<V>();
#pragma unroll
  for (int c = 0; c < kCached; ++c) {
    std::int64_t j = lane + c * group;
    cached[c] = j < classes ? convert<V>(x[j]) : m::lowest<V>();
  }
#pragma unroll
  for (int c = 0; c < kCached; ++c) greatest = m::maximum(greatest, cached[c]);
  std::int64_t rest = lane + kCached * group;
  for (std::int64_t j = rest; j < classes; j += group) {
    greatest = m::maximum(greatest, convert<V>(x[j]));
  }
  greatest = join_all<Greater>(greatest, group);
  V sum = V(0);
#pragma unroll
  for (int c = 0; c < kCached; ++c) {
    if (lane + c * group < classes) sum += m::exp(cached[c] - greatest);
  }
  for (std::int64_t j = rest; j < classes; j += group) sum += m::exp(convert<V>(x[j]) - greatest);
  V log_sum = m::log(join_all<Plus>(sum, group));
  V loss = V(0);
  auto put = [&](std::int64_t j, V value) {
    T result = convert<T>((value - greatest) - log_sum);
    y[j] = result;
    if (j == label) loss = -convert<V>(result);
  };
#pragma unroll
  for (int c = 0; c < kCached; ++c) {
    std::int64_t j = lane + c * group;
    if (j < classes) put(j, cached[c]);
  }
  for (std::int64_t j = rest; j < classes; j += group) put(j, convert<V>(x[j]));
  return loss;
}

template <class T>
__global__ void __launch_bounds__(kMostThreads)
    softmax_cross_entropy(const __grid_constant__ LossArgs args) {
  using V = ComputeOf<T>;
  int lane = threadIdx.x & (args.group - 1);
  std::int64_t rows_of_block = blockDim.x / args.group;
  Sums sums = {0, 0};
  for (std::int64_t first = blockIdx.x * rows_of_block; first < args.rows;
       first += gridDim.x * rows_of_block) {  // the same number of turns for a whole block
    std::int64_t row = first + threadIdx.x / args.group;
    bool there = row < args.rows;
    long long label =
        there ? load_integer(args.t + row * args.label_size, args.label_dtype) : args.ignore_label;
    bool counted = there && label != args.ignore_label;
    if (counted && (label < 0 || label >= args.classes)) {
      if (lane == 0) args.errors.report(ReportedError::label, label, args.classes);
    }
    std::int64_t at = row * args.classes;
    V loss = log_softmax<T, V>(reinterpret_cast<const T*>(args.x) + at,
                               reinterpret_cast<T*>(args.y) + at, there ? args.classes : 0,
                               counted ? label : -1, lane, args.group);
    sums = sums + Sums{static_cast<double>(loss), counted && lane == 0 ? 1.0 : 0.0};
  }
  if (!grid_sum(sums, args.workspace, args.semaphores)) return;
  double count =
      args.normalize ? (sums.count < 1 ? 1 : sums.count) : static_cast<double>(args.rows);
  store_any<V>(args.loss, args.loss_dtype, static_cast<V>(sums.value / count));
  store_any<float>(args.count, args.count_dtype, static_cast<float>(count));
}

struct LossGradArgs {
  const char *y, *t, *count, *gy;
  char* gx;
  Dtype label_dtype, gx_dtype;
  ElementType count_type, gy_type;
  std::int64_t label_size, gx_size;
  FastDiv classes;
  unsigned size;
  long long ignore_label;
};

template <class T>
__global__ void __launch_bounds__(kBlock)
    softmax_cross_entropy_grad(const __grid_constant__ LossGradArgs args) {
  using V = ComputeOf<T>;
  unsigned i = blockIdx.x * kBlock + threadIdx.x;
  if (i >= args.size) return;
  unsigned row = args.classes.divide(i), column = i - row * args.classes.divisor;
  V y = convert<V>(reinterpret_cast<const T*>(args.y)[i]);
  long long label = load_integer(args.t + row * args.label_size, args.label_dtype);
  V gy = load_any<V>(args.gy, args.gy_type), count = load_any<V>(args.count, args.count_type);
  V share = m::exp(y) - (column == label ? V(1) : V(0));
  V gx = label == args.ignore_label ? V(0) : share * gy / count;
  store_any<V>(args.gx + i * args.gx_size, args.gx_dtype, gx);
}

void run_grad(const SoftmaxCrossEntropyGrad& op, const LaunchContext& context, LossGradArgs args,
              std::int64_t rows, std::int64_t classes) {
  args.size = static_cast<unsigned>(rows * classes);
  std::int64_t grid = ceil_div(args.size, kBlock);
  auto launch_as = [&](auto kernel) {
    launch_kernel(op.name(), context, kernel, grid, kBlock, args);
  };
  switch (op.y.view.dtype) {
    case Dtype::float16: return launch_as(softmax_cross_entropy_grad<half_t>);
    case Dtype::bfloat16: return launch_as(softmax_cross_entropy_grad<bfloat16_t>);
    case Dtype::float32: return launch_as(softmax_cross_entropy_grad<float>);
    case Dtype::float64: return launch_as(softmax_cross_entropy_grad<double>);
    default: refuse_class_rows(op, op.y.view);
  }
}

}  // namespace

}  // namespace cuda

std::size_t SoftmaxCrossEntropy::workspace_bytes() const {
  return cuda::class_rows_bytes(x.view.shape[0], x.view.shape[1]);
}

void SoftmaxCrossEntropy::run_cuda(const cuda::LaunchContext& context) {
  cuda::LossArgs args = {};
  args.x = x.view.data;
  args.t = t.view.data;
  args.y = y.view.data;
  args.loss = loss.view.data;
  args.count = count.view.data;
  args.label_dtype = t.view.dtype;
  args.loss_dtype = loss.view.dtype;
  args.count_dtype = count.view.dtype;
  args.label_size = itemsize(t.view.dtype);
  args.rows = x.view.shape[0];
  args.classes = x.view.shape[1];
  args.ignore_label = ignore_label;
  args.normalize = normalize;
  args.workspace = context.workspace;
  args.semaphores = context.semaphores;
  args.errors = cuda::ErrorSink(name(), context);
  cuda::ClassRowsPlan plan = cuda::plan_class_rows(args.rows, args.classes);
  args.group = plan.group;
  auto launch_as = [&](auto kernel) {
    cuda::launch_kernel(name(), context, kernel, plan.blocks, plan.block, args);
  };
  switch (x.view.dtype) {
    case Dtype::float16: return launch_as(cuda::softmax_cross_entropy<half_t>);
    case Dtype::bfloat16: return launch_as(cuda::softmax_cross_entropy<bfloat16_t>);
    case Dtype::float32: return launch_as(cuda::softmax_cross_entropy<float>);
    case Dtype::float64: return launch_as(cuda::softmax_cross_entropy<double>);
    default: cuda::refuse_class_rows(*this, x.view);
  }
}

void SoftmaxCrossEntropyGrad::run_cuda(const cuda::LaunchContext& context) {
  if (gx.view.size() == 0) return;
  ComputeType type = compute_type(y.view.dtype);
  std::int64_t rows = y.view.shape[0], classes = y.view.shape[1];
  cuda::LossGradArgs args = {};
  args.count = count.view.data;
  args.gy = gy.view.data;
  args.count_type = cuda::ElementType(count.view.dtype, type, false);
  args.gy_type = cuda::ElementType(gy.view.dtype, type, false);
  args.label_dtype = t.view.dtype;
  args.gx_dtype = gx.view.dtype;
  args.label_size = itemsize(t.view.dtype);
  args.gx_size = itemsize(gx.view.dtype);
  args.classes = cuda::FastDiv(classes);
  args.ignore_label = ignore_label;
  std::int64_t most = std::max<std::int64_t>(1, cuda::kMaxCount / classes);
  for (std::int64_t row = 0; row < rows; row += most) {  // one turn but for huge arrays
    args.y = y.view.data + row * classes * itemsize(y.view.dtype);
    args.t = t.view.data + row * args.label_size;
    args.gx = gx.view.data + row * classes * args.gx_size;
    cuda::run_grad(*this, context, args, std::min(most, rows - row), classes);
  }
}

}  // namespace rensa

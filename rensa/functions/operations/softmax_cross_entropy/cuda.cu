// Softmax cross entropy and its gradient on a GPU.
#include <algorithm>

#include "rensa/core/functors.h"
#include "rensa/functions/operations/softmax_cross_entropy/cuda_class_rows.cuh"
#include "rensa/functions/operations/softmax_cross_entropy/softmax_cross_entropy.h"

namespace rensa::cuda {

namespace {

struct LossArgs {
  FlatView x, t, shift, loss, count;
  ClassRows rows;
  long long ignore_label;
  bool normalize;
  ErrorSink errors;
};

constexpr int kCached = 4;  // elements of a row that a thread keeps; what is beyond is read again

// The shift of one row; gives what the row adds to the loss in the first thread of the group. A
// group's threads call it together; those of rows that are not there with no classes.
template <class T, class V>
__device__ __forceinline__ V loss_of_row(const T* x, V* shift, std::int64_t classes,
                                         long long label, int lane, int group) {
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
  greatest = join_all<MaxOf<V>>(greatest, group);
  V sum = V(0);
#pragma unroll
  for (int c = 0; c < kCached; ++c) {
    if (lane + c * group < classes) sum += m::exp(cached[c] - greatest);
  }
  for (std::int64_t j = rest; j < classes; j += group) sum += m::exp(convert<V>(x[j]) - greatest);
  V log_sum = m::log(join_all<SumOf<V>>(sum, group));
  if (lane != 0 || classes == 0) return V(0);
  shift[0] = greatest;
  shift[1] = log_sum;
  return label < 0 || label >= classes ? V(0) : -((convert<V>(x[label]) - greatest) - log_sum);
}

template <class T>
__global__ void __launch_bounds__(kMostThreads)
    softmax_cross_entropy(const __grid_constant__ LossArgs args) {
  using V = ComputeOf<T>;
  int lane = args.rows.lane();
  std::int64_t classes = args.rows.classes;
  Sums sums = {0, 0};
  args.rows.for_each([&](std::int64_t row, bool there) {
    long long label = there ? args.t.load_index(row) : args.ignore_label;
    bool counted = there && label != args.ignore_label;
    if (counted && (label < 0 || label >= classes)) {
      if (lane == 0) args.errors.report(ReportedError::label, label, classes);
    }
    std::int64_t at = row * classes;
    V loss = loss_of_row<T, V>(args.x.as<const T>() + at, args.shift.as<V>() + 2 * row,
                               there ? classes : 0, counted ? label : -1, lane, args.rows.group);
    sums = sums + Sums{static_cast<double>(loss), counted && lane == 0 ? 1.0 : 0.0};
  });
  if (!grid_sum(sums, args.rows)) return;
  double count =
      args.normalize ? (sums.count < 1 ? 1 : sums.count) : static_cast<double>(args.rows.rows);
  args.loss.store(0, static_cast<V>(sums.value / count));
  args.count.store(0, static_cast<float>(count));
}

struct LossGradArgs {
  FlatView x, shift, t, count, gy, gx;
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
  const V* shift = args.shift.as<const V>() + 2 * row;
  V y = (convert<V>(args.x.as<const T>()[i]) - shift[0]) - shift[1];
  long long label = args.t.load_index(row);
  V gy = args.gy.load<V>(0), count = args.count.load<V>(0);
  V share = m::exp(y) - (column == label ? V(1) : V(0));
  V gx = label == args.ignore_label ? V(0) : share * gy / count;
  args.gx.store(i, gx);
}

void run_grad(const operations::SoftmaxCrossEntropyGrad& op, const LaunchContext& context,
              LossGradArgs args, std::int64_t rows, std::int64_t classes) {
  args.size = static_cast<unsigned>(rows * classes);
  std::int64_t grid = ceil_div(args.size, kBlock);
  auto launch_as = [&](auto kernel) {
    launch_kernel(op.name(), context, kernel, grid, kBlock, args);
  };
  switch (op.x.view.dtype) {
    case Dtype::float16: return launch_as(softmax_cross_entropy_grad<half_t>);
    case Dtype::bfloat16: return launch_as(softmax_cross_entropy_grad<bfloat16_t>);
    case Dtype::float32: return launch_as(softmax_cross_entropy_grad<float>);
    case Dtype::float64: return launch_as(softmax_cross_entropy_grad<double>);
    default: refuse_class_rows(op, op.x.view);
  }
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

std::size_t SoftmaxCrossEntropy::workspace_bytes() const {
  return cuda::class_rows_bytes(x.view.shape[0], x.view.shape[1]);
}

void SoftmaxCrossEntropy::run_cuda(const cuda::LaunchContext& context) {
  cuda::ClassRowsPlan plan = cuda::plan_class_rows(x.view.shape[0], x.view.shape[1]);
  cuda::LossArgs args = {};
  args.x = cuda::FlatView(x.view);
  args.t = cuda::FlatView(t.view);
  args.shift = cuda::FlatView(shift.view);
  args.loss = cuda::FlatView(loss.view);
  args.count = cuda::FlatView(count.view);
  args.rows = cuda::ClassRows(x.view, plan, context);
  args.ignore_label = ignore_label;
  args.normalize = normalize;
  args.errors = cuda::ErrorSink(name(), context);
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
  ComputeType type = compute_type(x.view.dtype);
  std::int64_t rows = x.view.shape[0], classes = x.view.shape[1];
  cuda::LossGradArgs args = {};
  args.count = cuda::FlatView(count.view, type);
  args.gy = cuda::FlatView(gy.view, type);
  args.classes = FastDiv(classes);
  args.ignore_label = ignore_label;
  std::int64_t most = std::max<std::int64_t>(1, cuda::kMaxCount / classes);
  for (std::int64_t row = 0; row < rows; row += most) {  // one turn but for huge arrays
    args.x = cuda::FlatView(x.view).from(row * classes);
    args.shift = cuda::FlatView(shift.view).from(2 * row);
    args.t = cuda::FlatView(t.view).from(row);
    args.gx = cuda::FlatView(gx.view).from(row * classes);
    cuda::run_grad(*this, context, args, std::min(most, rows - row), classes);
  }
}

}  // namespace rensa::operations

// Softmax cross entropy, its gradient and accuracy on a GPU.
#include <algorithm>
#include <string>

#include "rensa/backend/cuda/class_rows.h"
#include "rensa/backend/cuda/group.cuh"
#include "rensa/backend/cuda/reduce.cuh"
#include "rensa/core/error.h"
#include "rensa/device/operations.h"

namespace rensa {

namespace cuda {

namespace {

constexpr int kMostThreads = 1024;  // of a block

// What a block knows of its rows: two sums.
struct Sums {
  double value;  // the loss, or rows that are right
  double count;  // rows counted
};
__device__ __forceinline__ Sums operator+(Sums a, Sums b) {
  return {a.value + b.value, a.count + b.count};
}

// The sum over the block, in thread 0. Called by the whole block.
__device__ __forceinline__ Sums block_sum(Sums sums) {
  __shared__ Sums warps[kMostThreads / 32];
  for (int offset = 16; offset > 0; offset /= 2) sums = sums + shuffle_down(sums, offset);
  __syncthreads();  // a second call must not overwrite what the first still reads
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sums;
  __syncthreads();
  if (threadIdx.x >= 32) return sums;
  sums = threadIdx.x < blockDim.x / 32 ? warps[threadIdx.x] : Sums{0, 0};
  for (int offset = 16; offset > 0; offset /= 2) sums = sums + shuffle_down(sums, offset);
  return sums;
}

// The sum over all blocks. True in the one thread that has it.
__device__ __forceinline__ bool grid_sum(Sums& sums, void* workspace, unsigned* semaphore) {
  sums = block_sum(sums);
  if (gridDim.x == 1) return threadIdx.x == 0;
  Sums* partials = static_cast<Sums*>(workspace);
  if (threadIdx.x == 0) partials[blockIdx.x] = sums;
  if (!is_last_block(semaphore, gridDim.x)) return false;
  sums = {0, 0};
  for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) sums = sums + partials[i];
  sums = block_sum(sums);
  return threadIdx.x == 0;
}

// --- softmax cross entropy -----------------------------------------------------------------------

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

// --- accuracy ------------------------------------------------------------------------------------

struct AccuracyArgs {
  const char *y, *t;
  char* accuracy;
  ElementType type;
  Dtype label_dtype, accuracy_dtype;
  std::int64_t size, label_size;  // bytes of an element
  std::int64_t rows, classes;
  bool has_ignore_label;
  long long ignore_label;
  int group;
  void* workspace;
  unsigned* semaphores;
};

template <class V>
__global__ void __launch_bounds__(kMostThreads)
    accuracy(const __grid_constant__ AccuracyArgs args) {
  using Reducer = ArgReducer<V, true>;
  int lane = threadIdx.x & (args.group - 1);
  std::int64_t rows_of_block = blockDim.x / args.group;
  Sums sums = {0, 0};
  for (std::int64_t first = blockIdx.x * rows_of_block; first < args.rows;
       first += gridDim.x * rows_of_block) {
    std::int64_t row = first + threadIdx.x / args.group;
    bool there = row < args.rows;
    long long label = there ? load_integer(args.t + row * args.label_size, args.label_dtype) : 0;
    auto best = Reducer::identity();
    const char* y = args.y + row * args.classes * args.size;
    for (std::int64_t j = lane; j < (there ? args.classes : 0); j += args.group) {
      best = Reducer::take(best, load_any<V>(y + j * args.size, args.type), j);
    }
    best = join_group<Reducer>(best, args.group);
    bool counted = there && lane == 0 && !(args.has_ignore_label && label == args.ignore_label);
    if (counted) sums = sums + Sums{best.index == label ? 1.0 : 0.0, 1.0};
  }
  if (!grid_sum(sums, args.workspace, args.semaphores)) return;
  store_any<double>(args.accuracy, args.accuracy_dtype,
                    sums.count > 0 ? sums.value / sums.count : 0.0);
}

[[noreturn]] void refuse(const Operation& op, const ArrayView& view) {
  throw DtypeError(std::string(op.name()) + ": " + view.describe() +
                   " is not taken, only float16, bfloat16, float32 and float64");
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
    default: refuse(op, op.y.view);
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
    default: cuda::refuse(*this, x.view);
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

std::size_t Accuracy::workspace_bytes() const {
  return cuda::class_rows_bytes(y.view.shape[0], y.view.shape[1]);
}

void Accuracy::run_cuda(const cuda::LaunchContext& context) {
  cuda::AccuracyArgs args = {};
  ComputeType type = compute_type(y.view.dtype);
  args.y = y.view.data;
  args.t = t.view.data;
  args.accuracy = accuracy.view.data;
  args.type = cuda::ElementType(y.view.dtype, type, false);
  args.label_dtype = t.view.dtype;
  args.accuracy_dtype = accuracy.view.dtype;
  args.size = itemsize(y.view.dtype);
  args.label_size = itemsize(t.view.dtype);
  args.rows = y.view.shape[0];
  args.classes = y.view.shape[1];
  args.has_ignore_label = has_ignore_label;
  args.ignore_label = ignore_label;
  args.workspace = context.workspace;
  args.semaphores = context.semaphores;
  cuda::ClassRowsPlan plan = cuda::plan_class_rows(args.rows, args.classes);
  args.group = plan.group;
  auto launch_as = [&](auto kernel) {
    cuda::launch_kernel(name(), context, kernel, plan.blocks, plan.block, args);
  };
  switch (type) {
    case ComputeType::f32: return launch_as(cuda::accuracy<float>);
    case ComputeType::f64: return launch_as(cuda::accuracy<double>);
    default: cuda::refuse(*this, y.view);
  }
}

}  // namespace rensa

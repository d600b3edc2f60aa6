// Softmax cross entropy and its gradient on a GPU.
#include <algorithm>

#include "rensa/core/functors.h"
#include "rensa/functions/operations/softmax_cross_entropy/cuda_class_rows.cuh"
#include "rensa/functions/operations/softmax_cross_entropy/cuda_short_rows.cuh"
#include "rensa/functions/operations/softmax_cross_entropy/softmax_cross_entropy.h"

namespace rensa::cuda {

namespace {

struct LossArgs {
  FlatView x, t, shift, loss, count;
  ClassRows rows;
  long long ignore_label;
  bool normalize;
  bool vector;  // x's vectors are aligned
  ErrorSink errors;
};

// The shift of one row; gives what the row adds to the loss in the first thread of the group.
template <int kCached, class T, class V>
__device__ __forceinline__ V loss_of_row(const T* x, V* shift, int classes, long long label,
                                         int lane, int group) {
  ShortRow<V, kCached> row = short_row<kCached>(x, classes, lane, group);
  if (lane != 0 || classes == 0) return V(0);
  shift[0] = row.greatest;
  shift[1] = row.log_sum;
  if (label < 0 || label >= classes) return V(0);
  return -((convert<V>(x[label]) - row.greatest) - row.log_sum);
}

// The loss and the count from what each thread has of them.
template <class V> __device__ __forceinline__ void store_loss(const LossArgs& args, Sums sums) {
  if (!grid_sum(sums, args.rows)) return;
  double count =
      args.normalize ? (sums.count < 1 ? 1 : sums.count) : static_cast<double>(args.rows.rows);
  args.loss.store(0, static_cast<V>(sums.value / count));
  args.count.store(0, static_cast<float>(count));
}

template <class T, int kCached>
__global__ void __launch_bounds__(kMostThreads)
    softmax_cross_entropy(const __grid_constant__ LossArgs args) {
  wait_for_previous();
  using V = ComputeOf<T>;
  int lane = args.rows.lane();
  int classes = static_cast<int>(args.rows.classes);
  Sums sums = {0, 0};
  args.rows.for_each([&](std::int64_t row, bool there) {
    long long label = there ? args.t.load_index(row) : args.ignore_label;
    bool counted = there && label != args.ignore_label;
    if (counted && (label < 0 || label >= classes)) {
      if (lane == 0) args.errors.report(ReportedError::label, label, classes);
    }
    std::int64_t at = row * classes;
    V loss = loss_of_row<kCached>(args.x.as<const T>() + at, args.shift.as<V>() + 2 * row,
                                  there ? classes : 0, counted ? label : -1, lane, args.rows.group);
    sums = sums + Sums{static_cast<double>(loss), counted && lane == 0 ? 1.0 : 0.0};
  });
  store_loss<V>(args, sums);
}

// exp(x) of a term of a sum of elements of T. Those of 16 bits have far fewer digits than the
// instruction's 22.
template <class T, class V> __device__ __forceinline__ V exp_term(V x) {
  if constexpr (is_16bit_float<T>) {
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * 1.44269504088896340736f));
    return power;
  } else {
    return m::exp(x);
  }
}

// The greatest of the values taken so far and the sum of exp(value - greatest), in one pass
// (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018). NaN makes the sum
// NaN, and is not looked for by the comparisons.
template <class T> struct RunningSum {
  using V = ComputeOf<T>;
  V greatest = m::lowest<V>(), sum = V(0);
  // Where all so far were -inf, exp(-inf - 0): 0 as it is once a greater one is found.
  __device__ __forceinline__ V term(V x) const {
    return exp_term<T>(x - (greatest == m::lowest<V>() ? V(0) : greatest));
  }
  // `most` is at least `greatest`.
  __device__ __forceinline__ void raise(V most) {
    if (most == greatest) return;
    sum *= m::exp(greatest - most);
    greatest = most;
  }
  __device__ __forceinline__ void take(V x) {
    raise(fmax(greatest, x));
    sum += term(x);
  }
  // Of the vectors at k, k + step, ..., those below `count` are there.
  __device__ __forceinline__ void take(const Vector<T> (&x)[kPacksAtOnce], unsigned k,
                                       unsigned step, unsigned count) {
    constexpr int W = RowVectors<T>::W;
    V most = greatest;
#pragma unroll
    for (unsigned c = 0; c < kPacksAtOnce; ++c) {
      if (k + c * step >= count) break;
#pragma unroll
      for (int j = 0; j < W; ++j) most = fmax(most, x[c].value(j));
    }
    raise(most);
#pragma unroll
    for (unsigned c = 0; c < kPacksAtOnce; ++c) {
      if (k + c * step >= count) break;
      V part = V(0);
#pragma unroll
      for (int j = 0; j < W; ++j) part += term(x[c].value(j));
      sum += part;
    }
  }
};

// The shift of one long row, read once.
template <class T>
__device__ __forceinline__ RunningSum<T> sum_of_row(const T* x, const RowVectors<T>& at,
                                                    unsigned lane, unsigned group, bool vector) {
  using V = ComputeOf<T>;
  RunningSum<T> running;
  std::int64_t single = at.single(lane);
  T outside = single >= 0 ? x[single] : T();
  for (unsigned k = lane; k < at.count; k += kPacksAtOnce * group) {
    Vector<T> vectors[kPacksAtOnce];
    at.load(x, k, group, vector, vectors);
    running.take(vectors, k, group, at.count);
  }
  if (single >= 0) running.take(convert<V>(outside));
  return running;
}

template <class T>
__global__ void __launch_bounds__(kBlock, 4)
    softmax_cross_entropy_of_long_rows(const __grid_constant__ LossArgs args) {
  wait_for_previous();
  using V = ComputeOf<T>;
  int lane = args.rows.lane(), group = args.rows.group;
  Sums sums = {0, 0};
  args.rows.for_each([&](std::int64_t row, bool there) {
    std::int64_t classes = there ? args.rows.classes : 0;
    const T* x = args.x.as<const T>() + row * args.rows.classes;
    // The label's bits, which are looked at once the row is read.
    Raw<long long> bits = {};
    if (there && lane == 0) {
      int log2_size = args.t.type.log2_size;
      bits = load_raw<long long>(args.t.data + (row << log2_size), log2_size);
    }
    RunningSum<T> running = sum_of_row(x, RowVectors<T>(row, classes), lane, group, args.vector);
    bool counted = false, known = false;
    V taken = V(0);
    if (there && lane == 0) {
      long long label = load_integer(reinterpret_cast<const char*>(bits.bits), args.t.type.dtype);
      counted = label != args.ignore_label;
      known = counted && label >= 0 && label < classes;
      if (known) taken = convert<V>(x[label]);
      if (counted && !known) args.errors.report(ReportedError::label, label, classes);
    }
    V greatest = join_all<MaxOf<V>>(running.greatest, group);
    running.raise(greatest);
    V log_sum = m::log(join_all<SumOf<V>>(running.sum, group));
    if (!there || lane != 0) return;
    V* shift = args.shift.as<V>() + 2 * row;
    shift[0] = greatest;
    shift[1] = log_sum;
    V loss = known ? -((taken - greatest) - log_sum) : V(0);
    sums = sums + Sums{static_cast<double>(loss), counted ? 1.0 : 0.0};
  });
  store_loss<V>(args, sums);
}

// Rows of any length, at any address.
template <class T>
__global__ void __launch_bounds__(kBlock)
    softmax_cross_entropy_grad(const __grid_constant__ LossGradArgs args) {
  wait_for_previous();
  using V = ComputeOf<T>;
  unsigned i = blockIdx.x * kBlock + threadIdx.x;
  if (i >= args.rows * args.classes) return;
  unsigned row = args.by_classes.divide(i), column = i - row * args.by_classes.divisor;
  GradOfRow<T> grad(args, row);
  V one = column == grad.label ? V(1) : V(0);
  T gx = grad.template of<false>(convert<V>(args.x.as<const T>()[i]), one);
  args.gx.as<T>()[i] = grad.label == args.ignore_label ? convert<T>(0.0f) : gx;
}

// What the loss is divided by, found from the labels by a block of kBlock threads.
template <class V> __device__ __forceinline__ V count_labels(const LossGradArgs& args) {
  if (!args.normalize) return static_cast<V>(args.rows);
  int counted = join_all<SumOf<int>>(count_labels_of_thread(args, kBlock), kBlock);
  return static_cast<V>(counted < 1 ? 1 : counted);
}

// Without the loss's shift and count, of few rows, whose labels each block counts.
template <class T, int kCached>
__global__ void __launch_bounds__(kBlock)
    softmax_cross_entropy_grad_of_short_rows(const __grid_constant__ LossGradArgs args) {
  wait_for_previous();
  using V = ComputeOf<T>;
  int group = args.group, lane = threadIdx.x & (group - 1), log2_group = 31 - __clz(group);
  int row = static_cast<int>((blockIdx.x * kBlock + threadIdx.x) >> log2_group);
  int classes = static_cast<int>(args.classes);
  bool there = row < args.rows;
  // All that is loaded is loaded first.
  long long label = there ? args.t.load_index(row) : 0;
  V gy = args.gy.load<V>(0);
  std::int64_t first = static_cast<std::int64_t>(row) * classes;
  ShortRow<V, kCached> found =
      short_row<kCached>(args.x.as<const T>() + first, there ? classes : 0, lane, group);
  GradOfRow<T> grad(found.greatest, found.log_sum, gy, count_labels<V>(args), label);
  if (!there) return;
  T* gx = args.gx.as<T>() + first;
#pragma unroll
  for (int c = 0; c < kCached; ++c) {
    int j = lane + c * group;
    if (j >= classes) break;
    T value = grad.template of<false>(found.cached[c], j == label ? V(1) : V(0));
    gx[j] = label == args.ignore_label ? convert<T>(0.0f) : value;
  }
}

// The part of a row that thread `lane` of `step` has.
template <bool by_power, class T>
__device__ __forceinline__ void store_grad_of_row(const GradOfRow<T>& grad, const RowVectors<T>& at,
                                                  const T* x, T* gx, unsigned lane, unsigned step) {
  using V = ComputeOf<T>;
  constexpr int W = RowVectors<T>::W;
  std::int64_t single = at.single(lane), label = grad.label, in_vectors = label - at.head;
  bool known = label >= 0 && label < at.classes;
  bool has_label = known && (in_vectors >= 0 && in_vectors / W < at.count
                                 ? static_cast<unsigned>(in_vectors / W) % step == lane
                                 : label == single);
  V of_label = has_label ? convert<V>(x[label]) : V(0);
  if (single >= 0) gx[single] = grad.template of<by_power>(convert<V>(x[single]), V(0));
  auto* out = reinterpret_cast<Pack<T, W>*>(gx + at.head);
  for (unsigned k = lane; k < at.count; k += kPacksAtOnce * step) {
    Vector<T> vectors[kPacksAtOnce];
    at.load(x, k, step, true, vectors);
#pragma unroll
    for (unsigned c = 0; c < kPacksAtOnce; ++c) {
      if (k + c * step >= at.count) break;
      Pack<T, W> result;
#pragma unroll
      for (int j = 0; j < W; ++j) {
        result.value[j] = grad.template of<by_power>(vectors[c].value(j), V(0));
      }
      out[k + c * step] = result;
    }
  }
  if (has_label) gx[label] = grad.template of<by_power>(of_label, V(1));  // once more
}

template <class T>
__device__ __forceinline__ void store_zeros(const RowVectors<T>& at, T* gx, unsigned lane,
                                            unsigned step) {
  if (std::int64_t single = at.single(lane); single >= 0) gx[single] = convert<T>(0.0f);
  using Zeros = Pack<T, RowVectors<T>::W>;
  Zeros zeros = {};
  for (unsigned k = lane; k < at.count; k += step) {
    reinterpret_cast<Zeros*>(gx + at.head)[k] = zeros;
  }
}

// blockIdx.y: the block's part of its row, or rows.
template <class T>
__global__ void __launch_bounds__(kBlock, 4)
    softmax_cross_entropy_grad_by_vectors(const __grid_constant__ LossGradArgs args) {
  wait_for_previous();
  unsigned group = args.group;
  std::int64_t row = blockIdx.x * static_cast<std::int64_t>(kBlock / group) + threadIdx.x / group;
  if (row >= args.rows) return;
  unsigned lane = blockIdx.y * group + (threadIdx.x & (group - 1)), step = gridDim.y * group;
  RowVectors<T> at(row, args.classes);
  GradOfRow<T> grad(args, row);
  const T* x = args.x.as<const T>() + row * args.classes;
  T* gx = args.gx.as<T>() + row * args.classes;
  if (grad.label == args.ignore_label) {
    store_zeros(at, gx, lane, step);
  } else if (grad.count_is_power()) {
    store_grad_of_row<true>(grad, at, x, gx, lane, step);
  } else {
    store_grad_of_row<false>(grad, at, x, gx, lane, step);
  }
}

// Few rows are shared out among blocks in parts, in which every thread has a vector.
dim3 plan_vector_grad(LossGradArgs& args, Dtype dtype) {
  std::int64_t width = 16 / itemsize(dtype), most = 1;
  bool warps = args.classes <= 32 * kPacksAtOnce * width;
  args.group = warps ? 32 : kBlock;
  if (!warps) most = ceil_div(args.classes, kBlock * width);
  std::int64_t parts = std::clamp<std::int64_t>(8 * kMultiprocessors / args.rows, 1, most);
  return dim3(static_cast<unsigned>(ceil_div(args.rows, kBlock / args.group)),
              static_cast<unsigned>(parts));
}

void run_grad(const operations::SoftmaxCrossEntropyGrad& op, const LaunchContext& context,
              LossGradArgs args) {
  visit_class_rows(op, op.x.view, [&](auto element) {
    using T = decltype(element);
    if (args.by_vectors) {
      dim3 grid = plan_vector_grad(args, op.x.view.dtype);
      launch_kernel(op.name(), context, softmax_cross_entropy_grad_by_vectors<T>, grid, kBlock,
                    args);
    } else {
      args.by_classes = FastDiv(args.classes);
      launch_kernel(op.name(), context, softmax_cross_entropy_grad<T>,
                    ceil_div(args.rows * args.classes, kBlock), kBlock, args);
    }
  });
}

void run_grad_of_short_rows(const operations::SoftmaxCrossEntropyGrad& op,
                            const LaunchContext& context, LossGradArgs args) {
  if (!op.is_few_short_rows(op.x.view)) refuse_large_rows(op, op.x.view);
  args.x = FlatView(op.x.view);
  args.t = FlatView(op.t.view);
  args.gx = FlatView(op.gx.view);
  args.rows = op.x.view.shape[0];
  args.group = threads_of_short_row(args.classes);
  visit_class_rows(op, op.x.view, [&](auto element) {
    using T = decltype(element);
    auto kernel = args.classes <= args.group
                      ? softmax_cross_entropy_grad_of_short_rows<T, 1>
                      : softmax_cross_entropy_grad_of_short_rows<T, kMostCached>;
    launch_kernel(op.name(), context, kernel, ceil_div(args.rows * args.group, kBlock), kBlock,
                  args);
  });
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
  args.vector = cuda::is_aligned(x.view.data, 16);
  cuda::visit_class_rows(*this, x.view, [&](auto element) {
    using T = decltype(element);
    auto kernel = args.rows.classes > cuda::kShortRow ? cuda::softmax_cross_entropy_of_long_rows<T>
                  : args.rows.classes <= args.rows.group
                      ? cuda::softmax_cross_entropy<T, 1>
                      : cuda::softmax_cross_entropy<T, cuda::kMostCached>;
    cuda::launch_kernel(name(), context, kernel, plan.blocks, plan.block, args);
  });
}

void SoftmaxCrossEntropyGrad::run_cuda(const cuda::LaunchContext& context) {
  if (gx.view.size() == 0) return;
  ComputeType type = compute_type(x.view.dtype);
  std::int64_t rows = x.view.shape[0], classes = x.view.shape[1];
  cuda::LossGradArgs args = {};
  args.gy = cuda::FlatView(gy.view, type);
  args.classes = classes;
  args.normalize = normalize;
  args.ignore_label = ignore_label;
  if (!shift.present()) return cuda::run_grad_of_short_rows(*this, context, args);
  args.count = cuda::FlatView(count.view, type);
  args.by_vectors = classes > cuda::kShortRow && cuda::is_aligned(x.view.data, 16) &&
                    cuda::is_aligned(gx.view.data, 16);
  // One turn but for huge arrays. Turns of many rows begin where a vector does.
  std::int64_t most =
      args.by_vectors ? cuda::kMaxCount : std::max<std::int64_t>(1, cuda::kMaxCount / classes);
  for (std::int64_t row = 0; row < rows; row += most) {
    args.x = cuda::FlatView(x.view).from(row * classes);
    args.shift = cuda::FlatView(shift.view).from(2 * row);
    args.t = cuda::FlatView(t.view).from(row);
    args.gx = cuda::FlatView(gx.view).from(row * classes);
    args.rows = std::min(most, rows - row);
    cuda::run_grad(*this, context, args);
  }
}

}  // namespace rensa::operations

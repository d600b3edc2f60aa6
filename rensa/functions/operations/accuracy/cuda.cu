// Accuracy on a GPU.
#include "rensa/functions/operations/accuracy/accuracy.h"
#include "rensa/functions/operations/softmax_cross_entropy/cuda_class_rows.cuh"
#include "rensa/operations/reduce/cuda_kernels.cuh"

namespace rensa::cuda {

namespace {

struct AccuracyArgs {
  FlatView y, t, accuracy;
  ClassRows rows;
  bool vector;  // y's vectors are aligned
  bool has_ignore_label;
  long long ignore_label;
};

// What is greatest of a short row as far as thread `lane` of `group` has it.
template <class T>
__device__ __forceinline__ auto best_of_row(const T* y, std::int64_t classes, int lane, int group) {
  using V = ComputeOf<T>;
  using Reducer = ArgReducer<V, true>;
  auto best = Reducer::identity();
  for (std::int64_t j = lane; j < classes; j += group) {
    best = Reducer::take(best, convert<V>(y[j]), j);
  }
  return best;
}

// The same of a long row. A vector's elements are compared one by one where the greatest of them
// may be the greatest so far.
template <class T>
__device__ __forceinline__ auto best_of_row(const T* y, const RowVectors<T>& at, unsigned lane,
                                            unsigned group, bool vector) {
  using V = ComputeOf<T>;
  using Reducer = ArgReducer<V, true>;
  constexpr int W = RowVectors<T>::W;
  std::int64_t single = at.single(lane);
  T outside = single >= 0 ? y[single] : T();
  auto best = Reducer::identity();
  for (unsigned k = lane; k < at.count; k += kPacksAtOnce * group) {
    Vector<T> vectors[kPacksAtOnce];
    at.load(y, k, group, vector, vectors);
#pragma unroll
    for (unsigned c = 0; c < kPacksAtOnce; ++c) {
      if (k + c * group >= at.count) break;
      V values[W];
#pragma unroll
      for (int j = 0; j < W; ++j) values[j] = vectors[c].value(j);
      V most = values[0];
#pragma unroll
      for (int j = 1; j < W; ++j) most = m::maximum(most, values[j]);
      if (best.index >= 0 && most <= best.value) continue;
      std::int64_t first = at.head + (k + c * group) * static_cast<std::int64_t>(W);
#pragma unroll
      for (int j = 0; j < W; ++j) best = Reducer::take(best, values[j], first + j);
    }
  }
  if (single < 0) return best;
  return Reducer::combine(best, {convert<V>(outside), single});
}

template <class T, bool is_long>
__global__ void __launch_bounds__(is_long ? kBlock : kMostThreads)
    accuracy(const __grid_constant__ AccuracyArgs args) {
  wait_for_previous();
  using Reducer = ArgReducer<ComputeOf<T>, true>;
  int lane = args.rows.lane(), group = args.rows.group;
  Sums sums = {0, 0};
  args.rows.for_each([&](std::int64_t row, bool there) {
    std::int64_t classes = there ? args.rows.classes : 0;
    const T* y = args.y.as<const T>() + row * args.rows.classes;
    auto best = Reducer::identity();
    if constexpr (is_long) {
      best = best_of_row(y, RowVectors<T>(row, classes), lane, group, args.vector);
    } else {
      best = best_of_row(y, classes, lane, group);
    }
    best = join_group<Reducer>(best, group);
    if (!there || lane != 0) return;
    long long label = args.t.load_index(row);
    if (args.has_ignore_label && label == args.ignore_label) return;
    sums = sums + Sums{best.index == label ? 1.0 : 0.0, 1.0};
  });
  if (!grid_sum(sums, args.rows)) return;
  args.accuracy.store(0, sums.count > 0 ? sums.value / sums.count : 0.0);
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

std::size_t Accuracy::workspace_bytes() const {
  return cuda::class_rows_bytes(y.view.shape[0], y.view.shape[1]);
}

void Accuracy::run_cuda(const cuda::LaunchContext& context) {
  cuda::ClassRowsPlan plan = cuda::plan_class_rows(y.view.shape[0], y.view.shape[1]);
  cuda::AccuracyArgs args = {};
  args.y = cuda::FlatView(y.view);
  args.t = cuda::FlatView(t.view);
  args.accuracy = cuda::FlatView(accuracy.view);
  args.rows = cuda::ClassRows(y.view, plan, context);
  args.has_ignore_label = has_ignore_label;
  args.ignore_label = ignore_label;
  args.vector = cuda::is_aligned(y.view.data, 16);
  cuda::visit_class_rows(*this, y.view, [&](auto element) {
    using T = decltype(element);
    bool is_long = args.rows.classes > cuda::kShortRow;
    auto kernel = is_long ? cuda::accuracy<T, true> : cuda::accuracy<T, false>;
    cuda::launch_kernel(name(), context, kernel, plan.blocks, plan.block, args);
  });
}

}  // namespace rensa::operations

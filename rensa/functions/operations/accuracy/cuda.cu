// Accuracy on a GPU.
#include "rensa/functions/operations/accuracy/accuracy.h"
#include "rensa/functions/operations/softmax_cross_entropy/cuda_class_rows.cuh"
#include "rensa/operations/reduce/cuda_kernels.cuh"

namespace rensa::cuda {

namespace {

struct AccuracyArgs {
  FlatView y, t, accuracy;
  ClassRows rows;
  bool has_ignore_label;
  long long ignore_label;
};

template <class V>
__global__ void __launch_bounds__(kMostThreads)
    accuracy(const __grid_constant__ AccuracyArgs args) {
  using Reducer = ArgReducer<V, true>;
  int lane = args.rows.lane(), group = args.rows.group;
  Sums sums = {0, 0};
  args.rows.for_each([&](std::int64_t row, bool there) {
    long long label = there ? args.t.load_index(row) : 0;
    auto best = Reducer::identity();
    std::int64_t first = row * args.rows.classes;
    for (std::int64_t j = lane; j < (there ? args.rows.classes : 0); j += group) {
      best = Reducer::take(best, args.y.load<V>(first + j), j);
    }
    best = join_group<Reducer>(best, group);
    bool counted = there && lane == 0 && !(args.has_ignore_label && label == args.ignore_label);
    if (counted) sums = sums + Sums{best.index == label ? 1.0 : 0.0, 1.0};
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
  ComputeType type = compute_type(y.view.dtype);
  cuda::ClassRowsPlan plan = cuda::plan_class_rows(y.view.shape[0], y.view.shape[1]);
  cuda::AccuracyArgs args = {};
  args.y = cuda::FlatView(y.view, type);
  args.t = cuda::FlatView(t.view);
  args.accuracy = cuda::FlatView(accuracy.view);
  args.rows = cuda::ClassRows(y.view, plan, context);
  args.has_ignore_label = has_ignore_label;
  args.ignore_label = ignore_label;
  auto launch_as = [&](auto kernel) {
    cuda::launch_kernel(name(), context, kernel, plan.blocks, plan.block, args);
  };
  switch (type) {
    case ComputeType::f32: return launch_as(cuda::accuracy<float>);
    case ComputeType::f64: return launch_as(cuda::accuracy<double>);
    default: cuda::refuse_class_rows(*this, y.view);
  }
}

}  // namespace rensa::operations

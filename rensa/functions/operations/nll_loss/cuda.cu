// The negative log-likelihood and its gradient on a GPU.
#include "rensa/functions/operations/nll_loss/nll_loss.h"
#include "rensa/functions/operations/softmax_cross_entropy/cuda_class_rows.cuh"

namespace rensa::cuda {

namespace {

struct NllArgs {
  FlatView x, t, loss, count;
  ClassRows rows;
  long long ignore_label;
  ErrorSink errors;
};

// A thread to a row.
template <class T>
__global__ void __launch_bounds__(kMostThreads) nll_loss(const __grid_constant__ NllArgs args) {
  wait_for_previous();
  using V = ComputeOf<T>;
  Sums sums = {0, 0};
  args.rows.for_each([&](std::int64_t row, bool there) {
    if (!there) return;
    long long label = args.t.load_index(row);
    if (label == args.ignore_label) return;
    if (label < 0 || label >= args.rows.classes) {
      args.errors.report(ReportedError::label, label, args.rows.classes);
      return;
    }
    V taken = convert<V>(args.x.as<const T>()[row * args.rows.classes + label]);
    sums = sums + Sums{-static_cast<double>(taken), 1.0};
  });
  if (!grid_sum(sums, args.rows)) return;
  args.loss.store(0, static_cast<V>(sums.value / sums.count));
  args.count.store(0, static_cast<V>(sums.count));
}

struct NllGradArgs {
  FlatView t, count, gy, gx;
  std::int64_t size, classes;
  long long ignore_label;
  FastDiv by_classes;
  bool small;    // by_classes takes all places
  bool aligned;  // gx's vectors are
};

// A thread to a vector, which may reach over the ends of rows.
template <class T>
__global__ void __launch_bounds__(kBlock) nll_loss_grad(const __grid_constant__ NllGradArgs args) {
  wait_for_previous();
  using V = ComputeOf<T>;
  constexpr int W = 16 / static_cast<int>(sizeof(T));
  std::int64_t first = (blockIdx.x * std::int64_t{kBlock} + threadIdx.x) * W;
  if (first >= args.size) return;
  std::int64_t row =
      args.small ? args.by_classes.divide(static_cast<unsigned>(first)) : first / args.classes;
  std::int64_t end = (row + 1) * args.classes;  // of the row
  // Where the row's element of its label stands; of no row: before all others.
  auto place = [&](std::int64_t i) -> std::int64_t {
    long long label = args.t.load_index(i);
    bool known = label != args.ignore_label && label >= 0 && label < args.classes;
    return known ? i * args.classes + label : -1;
  };
  std::int64_t at_label = place(row);
  T value = convert<T>(-args.gy.load<V>(0) / args.count.load<V>(0)), zero = convert<T>(0.0f);
  Pack<T, W> pack;
#pragma unroll
  for (int j = 0; j < W; ++j) {
    if (first + j == end && end < args.size) {
      at_label = place(++row);
      end += args.classes;
    }
    pack.value[j] = first + j == at_label ? value : zero;
  }
  store_pack<T, W>(args.gx.as<T>() + first, pack, args.size - first, args.aligned);
}

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

std::size_t NllLoss::workspace_bytes() const { return cuda::class_rows_bytes(x.view.shape[0], 1); }

void NllLoss::run_cuda(const cuda::LaunchContext& context) {
  cuda::ClassRowsPlan plan = cuda::plan_class_rows(x.view.shape[0], 1);
  cuda::NllArgs args = {};
  args.x = cuda::FlatView(x.view);
  args.t = cuda::FlatView(t.view);
  args.loss = cuda::FlatView(loss.view);
  args.count = cuda::FlatView(count.view);
  args.rows = cuda::ClassRows(x.view, plan, context);
  args.ignore_label = ignore_label;
  args.errors = cuda::ErrorSink(name(), context);
  cuda::visit_class_rows(*this, x.view, [&](auto element) {
    cuda::launch_kernel(name(), context, cuda::nll_loss<decltype(element)>, plan.blocks, plan.block,
                        args);
  });
}

void NllLossGrad::run_cuda(const cuda::LaunchContext& context) {
  ComputeType type = compute_type(gx.view.dtype);
  cuda::NllGradArgs args = {};
  args.t = cuda::FlatView(t.view);
  args.count = cuda::FlatView(count.view, type);
  args.gy = cuda::FlatView(gy.view, type);
  args.gx = cuda::FlatView(gx.view);
  args.size = gx.view.size();
  args.classes = gx.view.shape[1];
  args.ignore_label = ignore_label;
  args.by_classes = FastDiv(args.classes);
  args.small = args.size <= cuda::kMaxCount;
  args.aligned = cuda::is_aligned(gx.view.data, 16);
  cuda::visit_class_rows(*this, gx.view, [&](auto element) {
    using T = decltype(element);
    std::int64_t vectors = ceil_div(args.size, 16 / itemsize(gx.view.dtype));
    cuda::launch_kernel(name(), context, cuda::nll_loss_grad<T>, ceil_div(vectors, cuda::kBlock),
                        cuda::kBlock, args);
  });
}

}  // namespace rensa::operations

// Accuracy on a GPU.
#include "rensa/functions/operations/accuracy/accuracy.h"
#include "rensa/functions/operations/softmax_cross_entropy/cuda_class_rows.cuh"
#include "rensa/operations/reduce/cuda_kernels.cuh"

namespace rensa {

namespace cuda {

namespace {

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

}  // namespace

}  // namespace cuda

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
    default: cuda::refuse_class_rows(*this, y.view);
  }
}

}  // namespace rensa

// Reductions on a GPU: plans made into launches.
#include <algorithm>
#include <string>

#include "rensa/core/error.h"
#include "rensa/operations/reduce/cuda_kernels.cuh"

namespace rensa::cuda {

namespace reduction_rows {
#define RENSA_REDUCTION(name, rule, identity, map, reduce, post) extern const ReduceKernels name;
#define RENSA_REDUCTION_BESIDE(name, rule) extern const ReduceKernels name;
#include "rensa/core/reductions.def"
#include "rensa/core/reductions/beside.def"
#undef RENSA_REDUCTION
#undef RENSA_REDUCTION_BESIDE
}  // namespace reduction_rows

namespace {

// By their numbers (core/reductions.cc).
const ReduceKernels* const kKernels[] = {
#define RENSA_REDUCTION(name, rule, identity, map, reduce, post) &reduction_rows::name,
#define RENSA_REDUCTION_BESIDE(name, rule) &reduction_rows::name,
#include "rensa/core/reductions.def"
#include "rensa/core/reductions/beside.def"
#undef RENSA_REDUCTION
#undef RENSA_REDUCTION_BESIDE
};
const ReduceKernels& kernels_of(Reduction reduction) { return *kKernels[reduction.number()]; }

// Whether every vector that is loaded lies at a multiple of 16 bytes.
bool loads_are_aligned(const ReducePlan& plan) {
  if (plan.type == VectorType::none) return true;  // vectors of one element
  return vectors_are_aligned(plan.kept_in, plan.by_columns, 16) &&
         vectors_are_aligned(plan.reduced, !plan.by_columns, 16);
}

void check_extent(const char* operation, const ReducePlan& plan) {
  std::int64_t units =
      plan.by_columns ? plan.blocks.grid : plan.blocks.outputs * plan.blocks.slices;
  bool fits = units <= kMaxCount && (plan.reduced.ndim() == 1 || plan.count <= kMaxCount);
  if (fits) return;
  throw NotImplementedError(std::string(operation) + ": " + plan.kept_in.describe() +
                            " reduced over " + plan.reduced.shape.str() +
                            " is too large for one kernel; reduce one axis after the other");
}

}  // namespace

ReduceArgs reduce_args(const ReducePlan& plan, const LaunchContext& context, ComputeType compute,
                       bool truth) {
  ReduceArgs args = {};
  static_cast<ReduceBlocks&>(args) = plan.blocks;
  args.in = plan.kept_in.data;
  args.out = plan.kept_out.data;
  args.out_dtype = plan.kept_out.dtype;
  args.type = ElementType(plan.kept_in.dtype, compute, truth);
  args.vector = loads_are_aligned(plan);
  args.partials = context.workspace;
  args.semaphores = context.semaphores;
  int last = plan.kept_in.ndim() - 1;
  for (int axis = 0; axis < last + (plan.by_columns ? 0 : 1); ++axis) {
    args.kept.push_back(plan.kept_in.shape[axis],
                        {plan.kept_out.strides[axis], plan.kept_in.strides[axis]});
  }
  if (args.kept.ndim == 0) args.kept.push_back(1, {0, 0});
  int inner = plan.reduced.ndim() - 1;
  for (int axis = 0; axis <= inner; ++axis) {
    int width = axis == inner && !plan.by_columns ? plan.width : 1;
    args.reduced.push_back(std::max<std::int64_t>(1, ceil_div(plan.reduced.shape[axis], width)),
                           {plan.reduced.strides[axis] * width});
  }
  if (plan.by_columns) {
    args.in_stride = plan.kept_in.strides[last];
    args.out_stride = plan.kept_out.strides[last];
  }
  return args;
}

}  // namespace rensa::cuda

namespace rensa::operations {

void Reduce::run_cuda(const cuda::LaunchContext& context) {
  if (out.view.size() == 0) return;
  cuda::ReducePlan plan = cuda::plan_reduce(*this);
  cuda::check_extent(name(), plan);
  ComputeType type = compute_type(compute);
  const cuda::ReduceKernels& kernels = cuda::kernels_of(reduction);
  cuda::ReduceKernels::Pair pair = plan.type == cuda::VectorType::none
                                       ? kernels.any[static_cast<int>(type)]
                                       : kernels.vector[static_cast<int>(plan.type)];
  cuda::ReduceArgs args = cuda::reduce_args(plan, context, type, compute == bool_);
  cuda::ReduceKernel kernel = plan.by_columns ? pair.columns : pair.rows;
  bool blocks = args.slices > 1 || (args.group == cuda::kBlock && args.outputs < cuda::kFewOutputs);
  bool flat = args.vector && blocks && args.reduced.ndim == 1 && args.reduced.stride[0][0] == 16;
  if (!plan.by_columns && flat && pair.flat) kernel = pair.flat;
  if (!kernel) {
    throw DtypeError(std::string(name()) + ": no kernel computes it in " +
                     std::string(dtype_name(compute)));
  }
  cuda::launch_kernel(name(), context, kernel, args.grid, cuda::kBlock, args);
}

}  // namespace rensa::operations

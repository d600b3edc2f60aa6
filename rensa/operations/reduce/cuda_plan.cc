// How a reduction is spread over a GPU, and the workspace that follows from it.
#include "rensa/operations/reduce/cuda_plan.h"

#include "rensa/core/axes.h"

namespace rensa::cuda {

ReducePlan plan_reduce(const operations::Reduce& op) {
  ReducePlan plan;
  const ArrayView &in = op.in.view, &out = op.out.view;
  plan.kept_in = part_of_axes(in, op.axes, false);
  plan.kept_out = part_of_axes(out, op.axes, false);
  plan.reduced = part_of_axes(in, op.axes, true);
  ArrayView* kept[] = {&plan.kept_in, &plan.kept_out};
  ArrayView* reduced[] = {&plan.reduced};
  normalize_axes(kept, 2);
  keep_an_axis(kept, 2);
  plan.count = plan.reduced.size();
  if (plan.count > 0) {
    normalize_axes(reduced, 1);
    keep_an_axis(reduced, 1);
  }

  std::int64_t outputs = plan.kept_in.size(), size = itemsize(in.dtype);
  int last = plan.kept_in.ndim() - 1, inner = plan.reduced.ndim() - 1;
  plan.by_columns = reduces_columns(plan.kept_in, plan.reduced);
  const ArrayView& along = plan.by_columns ? plan.kept_in : plan.reduced;
  int axis = plan.by_columns ? last : inner;
  VectorType type = vector_type(in.dtype);
  ReductionRule rule = reduction_info(op.reduction).rule;
  if (type == VectorType::b8 && rule == ReductionRule::position) type = VectorType::none;
  bool dense = plan.count > 0 && type != VectorType::none && along.strides[axis] == size &&
               compute_type(in.dtype) == compute_type(op.compute);
  // An output's vectors must not run over the end of an axis.
  if (dense && (plan.by_columns || inner == 0 || along.shape[axis] % (16 / size) == 0)) {
    plan.type = type;
    plan.width = static_cast<int>(16 / size);
    if (plan.by_columns && type == VectorType::b8) plan.width = kBoolColumns;
  }
  std::int64_t width = plan.by_columns ? plan.kept_in.shape[last] : 1;
  plan.blocks = plan.by_columns ? plan_columns(outputs / width, width, plan.count, plan.width)
                                : plan_rows(outputs, plan.count, plan.width);
  std::int64_t partials = plan.blocks.slices > 1 ? plan.blocks.slices * outputs : 0;
  bool wide = rule == ReductionRule::deviations || rule == ReductionRule::nan_mean;
  plan.workspace_bytes = static_cast<std::size_t>(partials * kPartialBytes * (wide ? 2 : 1));
  return plan;
}

}  // namespace rensa::cuda

namespace rensa::operations {

std::size_t Reduce::workspace_bytes() const {
  return out.view.size() == 0 ? 0 : cuda::plan_reduce(*this).workspace_bytes;
}

}  // namespace rensa::operations

// How work is cut into blocks, and the workspace that follows from it.
#include "rensa/backend/cuda/launch_plan.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

#include "rensa/device/compare_operations.h"

namespace rensa {

namespace cuda {

namespace {

std::int64_t round_up(std::int64_t n, std::int64_t multiple) {
  return ceil_div(n, multiple) * multiple;
}

int power_of_two_above(std::int64_t n) {
  return static_cast<int>(
      std::bit_ceil(static_cast<std::uint64_t>(std::clamp<std::int64_t>(n, 1, kBlock))));
}

std::int64_t densest_stride(const ArrayView& view) {
  return std::abs(view.strides[view.ndim() - 1]);
}

}  // namespace

VectorType vector_type(Dtype d) {
  switch (d) {
    case Dtype::float32: return VectorType::f32;
    case Dtype::float16: return VectorType::f16;
    case Dtype::bfloat16: return VectorType::bf16;
    case Dtype::float64: return VectorType::f64;
    case Dtype::int32: return VectorType::i32;
    case Dtype::int64: return VectorType::i64;
    case Dtype::bool_: return VectorType::b8;
    default: return VectorType::none;
  }
}

std::size_t flat_workspace_bytes(std::int64_t nbytes) {
  RowsPlan plan = plan_rows(1, ceil_div(nbytes, 16));
  return static_cast<std::size_t>(plan.slices > 1 ? plan.slices * kPartialBytes : 0);
}

ReducePlan plan_reduce(const Reduce& op) {
  ReducePlan plan;
  const ArrayView &in = op.in.view, &out = op.out.view;
  plan.kept_in = plan.reduced = in;
  plan.kept_out = out;
  for (ArrayView* view : {&plan.kept_in, &plan.kept_out, &plan.reduced}) {
    view->shape = view->strides = {};
  }
  for (int axis = 0; axis < in.ndim(); ++axis) {
    if (op.axes >> axis & 1) {
      plan.reduced.shape.push_back(in.shape[axis]);
      plan.reduced.strides.push_back(in.strides[axis]);
    } else {
      plan.kept_in.shape.push_back(in.shape[axis]);
      plan.kept_in.strides.push_back(in.strides[axis]);
      plan.kept_out.shape.push_back(in.shape[axis]);
      plan.kept_out.strides.push_back(out.strides[axis]);
    }
  }
  ArrayView* kept[] = {&plan.kept_in, &plan.kept_out};
  ArrayView* reduced[] = {&plan.reduced};
  normalize_axes(kept, 2);
  plan.count = plan.reduced.size();
  if (plan.count > 0) normalize_axes(reduced, 1);

  std::int64_t outputs = plan.kept_in.size(), size = itemsize(in.dtype);
  int last = plan.kept_in.ndim() - 1, inner = plan.reduced.ndim() - 1;
  plan.by_columns = plan.count <= 1 || densest_stride(plan.kept_in) < densest_stride(plan.reduced);
  plan.by_columns &= outputs > 1;
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
  std::int64_t partials = 0;
  if (plan.by_columns) {
    std::int64_t width = plan.kept_in.shape[last], outer = outputs / width;
    plan.columns = plan_columns(outer, plan.count, ceil_div(width, plan.width));
    partials = plan.columns.slices > 1 ? plan.columns.slices * outputs : 0;
  } else {
    plan.rows = plan_rows(outputs, ceil_div(plan.count, plan.width));
    partials = plan.rows.slices > 1 ? plan.rows.slices * outputs : 0;
  }
  bool wide = rule == ReductionRule::deviations || rule == ReductionRule::nan_mean;
  plan.workspace_bytes = static_cast<std::size_t>(partials * kPartialBytes * (wide ? 2 : 1));
  return plan;
}

Reduce bias_sum(const ReluBiasGrad& op) {
  Reduce sum("sum", Reduction::sum);
  sum.axes = 1;
  sum.compute = op.gz.view.dtype;
  sum.in = op.gz;
  sum.out = op.gb;
  sum.out.view.shape.insert(0, 1);
  sum.out.view.strides.insert(0, 0);
  return sum;
}

ClassRowsPlan plan_class_rows(std::int64_t rows, std::int64_t classes) {
  // The last block sums one partial result a block; few enough blocks that this stays short.
  constexpr std::int64_t kMostBlocks = 8 * kMultiprocessors;
  ClassRowsPlan plan;
  if (classes > 128) {
    plan.group = kBlock;
    plan.blocks = std::clamp<std::int64_t>(rows, 1, kMostBlocks);
    return plan;
  }
  plan.group = std::min(32, power_of_two_above(classes));
  std::int64_t threads = rows * plan.group;
  if (threads <= 4096) {  // one block needs no meeting of blocks
    plan.block = static_cast<int>(std::clamp<std::int64_t>(round_up(threads, 32), 32, 1024));
  } else {
    plan.blocks = std::min(ceil_div(threads, plan.block), kMostBlocks);
  }
  return plan;
}

}  // namespace cuda

std::size_t Reduce::workspace_bytes() const {
  return out.view.size() == 0 ? 0 : cuda::plan_reduce(*this).workspace_bytes;
}

std::size_t AllClose::workspace_bytes() const {
  return cuda::flat_workspace_bytes(a.view.nbytes());
}

std::size_t ReluBiasGrad::workspace_bytes() const {
  return gb.view.size() == 0 ? 0 : cuda::plan_reduce(cuda::bias_sum(*this)).workspace_bytes;
}

namespace {
std::size_t class_rows_workspace(const ArrayView& rows) {
  std::int64_t blocks = cuda::plan_class_rows(rows.shape[0], rows.shape[1]).blocks;
  return static_cast<std::size_t>(blocks * cuda::kPartialBytes);
}
}  // namespace

std::size_t SoftmaxCrossEntropy::workspace_bytes() const { return class_rows_workspace(x.view); }

std::size_t Accuracy::workspace_bytes() const { return class_rows_workspace(y.view); }

}  // namespace rensa

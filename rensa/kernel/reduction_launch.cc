// A reduction planned and launched. The plans are those of the library's own reductions.
#include "rensa/kernel/reduction_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "rensa/core/axes.h"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"

namespace rensa::detail {

namespace {

using operations::RuntimeKernel;

constexpr std::int64_t kMostAccBytes = 64;  // of a reduce_type that is no dtype
constexpr int kMostWidth = 8;

std::int64_t bytes_of_type(const std::string& type) {
  try {
    return itemsize(parse_dtype(type));
  } catch (const DtypeError&) {
    return kMostAccBytes;
  }
}

std::int64_t& last(Shape& values) { return values[values.ndim() - 1]; }

void join_axes(std::vector<ArrayView*>& views, bool ordered) {
  int count = static_cast<int>(views.size());
  ordered ? collapse_axes(views.data(), count) : normalize_axes(views.data(), count);
  keep_an_axis(views.data(), count);
}

/// The operands' axes, divided into those that are kept and those that are reduced.
class SplitOperands {
 public:
  // By operand; the last one, number `lead`, is that of the largest operand, whose strides give the
  // order of the axes.
  std::vector<ArrayView> kept, reduced;
  std::size_t lead;

  SplitOperands(const ReductionText& text, const std::vector<KernelOperand>& operands,
                const Shape& shape, unsigned axes)
      : lead(operands.size()) {
    kept.resize(operands.size() + 1);
    reduced.resize(operands.size() + 1);
    ArrayView all;  // leads where there is no array
    all.shape = shape;
    all.strides = contiguous_strides(shape, itemsize(all.dtype));
    split(all, axes, lead);
    std::int64_t largest = -1;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const ArrayView& view = operands[k].array.view;
      if (operands[k].kind == ArgumentKind::element) {
        ArrayView stretched = broadcast_view(view, shape);
        split(stretched, axes, k);
        if (view.size() <= largest) continue;
        largest = view.size();
        split(stretched, axes, lead);
      } else if (operands[k].kind == ArgumentKind::kept) {
        split(view, axes, k);
      }
    }
    std::vector<ArrayView*> kept_views{&kept[lead]}, reduced_views{&reduced[lead]};
    for (std::size_t k = 0; k < operands.size(); ++k) {
      bool element = operands[k].kind == ArgumentKind::element;
      if (element || operands[k].kind == ArgumentKind::kept) kept_views.push_back(&kept[k]);
      if (element) reduced_views.push_back(&reduced[k]);
    }
    join_axes(kept_views, text.ordered);
    if (reduced[lead].shape.total() > 0) {
      join_axes(reduced_views, text.ordered);
    } else {
      for (ArrayView* view : reduced_views) view->shape = view->strides = Shape{0};
    }
  }

 private:
  void split(const ArrayView& view, unsigned axes, std::size_t k) {
    kept[k] = part_of_axes(view, axes, false);
    reduced[k] = part_of_axes(view, axes, true);
  }
};

Along along_of(std::int64_t stride, Dtype dtype) {
  return stride == itemsize(dtype) ? Along::dense : stride == 0 ? Along::constant : Along::strided;
}

/// Elements of a vector of a GPU's thread.
int vector_width(const ReductionPlan& p, std::int64_t extent, int wanted) {
  std::int64_t widest = 0;
  for (const ReductionArgument& a : p.layout.arguments) {
    if (a.kind != ArgumentKind::element) continue;
    if (a.along == Along::strided) return 1;
    if (a.along == Along::dense) widest = std::max(widest, itemsize(a.dtype));
  }
  if (widest == 0) return 1;
  std::int64_t width =
      std::min<std::int64_t>({wanted > 0 ? wanted : std::max<std::int64_t>(16 / widest, 1),
                              kMostWidth, 2 * kMostAccBytes / p.acc_bytes});
  // An output's vectors must not run over the end of an axis.
  bool fits = p.layout.columns || p.layout.reduced_ndim == 1 || extent % width == 0;
  return fits ? static_cast<int>(width) : 1;
}

/// Whether every vector of the dense operands lies at a multiple of its size.
bool dense_are_aligned(const ReductionLayout& layout, const SplitOperands& split) {
  for (std::size_t k = 0; k < layout.arguments.size(); ++k) {
    const ReductionArgument& a = layout.arguments[k];
    if (a.kind != ArgumentKind::element || a.along != Along::dense) continue;
    std::int64_t bytes = layout.width * itemsize(a.dtype);
    if (!cuda::vectors_are_aligned(split.kept[k], layout.columns, bytes) ||
        !cuda::vectors_are_aligned(split.reduced[k], !layout.columns, bytes)) {
      return false;
    }
  }
  return true;
}

void plan_gpu(ReductionPlan& p, const SplitOperands& split, const ReductionText& text,
              std::int64_t outputs, std::int64_t count) {
  ReductionLayout& layout = p.layout;
  std::int64_t inner = last(p.reduced_extents);
  layout.width = vector_width(p, inner, text.width);
  layout.aligned = dense_are_aligned(layout, split);
  p.blocks = layout.columns ? cuda::plan_columns(outputs / p.width, p.width, count, layout.width)
                            : cuda::plan_rows(outputs, count, layout.width);
  if (!layout.columns) {
    last(p.reduced_extents) = ceil_div(inner, layout.width);
    for (std::size_t k = 0; k < layout.arguments.size(); ++k) {
      if (layout.arguments[k].kind == ArgumentKind::element) last(p.reduced[k]) *= layout.width;
    }
  }
  p.partials = p.blocks.slices > 1 ? p.blocks.slices * outputs : 0;
  layout.small = std::max({outputs, count, outputs * count}) < cuda::kMaxCount;
  if (p.blocks.grid > cuda::kMaxCount) {
    throw NotImplementedError(fmt::format(
        "{}: {} outputs of {} elements each are too many for one kernel; reduce in parts",
        text.signature.name, outputs, count));
  }
}

// A kernel's bytes tell calls apart: there may be none between the members.
static_assert(std::has_unique_object_representations_v<cuda::ReduceBlocks>);
static_assert(std::has_unique_object_representations_v<host::ReduceParts>);

operations::KernelArgument pack(const ReductionPlan& p, const std::vector<KernelOperand>& operands,
                                std::size_t* scratch_offset) {
  operations::KernelArgument argument;
  ArgumentWriter writer(argument);
  if (p.layout.host) writer.put(p.parts);
  else writer.put(p.blocks);
  *scratch_offset = p.layout.host ? offsetof(host::ReduceParts, partials)
                                  : offsetof(cuda::ReduceBlocks, partials);
  for (const Shape* extents : {&p.kept_extents, &p.reduced_extents}) {
    for (std::int64_t extent : *extents) {
      extent = std::max<std::int64_t>(extent, 1);
      if (p.layout.host || !p.layout.small) writer.put(PlainDiv(extent));
      else writer.put(FastDiv(extent));
    }
  }
  writer.align(8);
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const ReductionArgument& a = p.layout.arguments[k];
    if (a.kind == ArgumentKind::number) continue;
    writer.pointer(operands[k].array, a.written);
    if (a.kind == ArgumentKind::raw) {
      if (a.contiguous) continue;
      writer.integers(operands[k].array.view.shape);
      writer.integers(operands[k].array.view.strides);
      continue;
    }
    writer.integers(p.kept[k]);
    if (a.kind == ArgumentKind::element) writer.integers(p.reduced[k]);
    if (p.layout.columns) writer.put(p.along[k]);
  }
  for (const KernelOperand& operand : operands) {
    if (operand.kind == ArgumentKind::number) writer.number(operand.number, operand.dtype);
  }
  writer.align();
  return argument;
}

}  // namespace

ReductionPlan plan_reduction(const ReductionText& text, const std::vector<KernelOperand>& operands,
                             const Shape& shape, unsigned axes, bool host) {
  SplitOperands split(text, operands, shape, axes);
  ReductionPlan p;
  const ArrayView &kept = split.kept[split.lead], &reduced = split.reduced[split.lead];
  std::int64_t outputs = kept.shape.total(), count = reduced.shape.total();
  ReductionLayout& layout = p.layout;
  layout.host = host;
  layout.columns =
      host ? host::reduces_columns(kept, reduced) : cuda::reduces_columns(kept, reduced);

  p.kept_extents = kept.shape;
  p.reduced_extents = reduced.shape;
  p.kept.resize(operands.size());
  p.reduced.resize(operands.size());
  p.along.resize(operands.size());
  for (std::size_t k = 0; k < operands.size(); ++k) {
    p.kept[k] = split.kept[k].strides;
    p.reduced[k] = split.reduced[k].strides;
  }
  if (layout.columns) {
    int column = p.kept_extents.ndim() - 1;
    p.width = p.kept_extents[column];
    p.kept_extents.erase(column);
    for (std::size_t k = 0; k < operands.size(); ++k) {
      if (p.kept[k].empty()) continue;
      p.along[k] = p.kept[k][column];
      p.kept[k].erase(column);
      if (column == 0) p.kept[k].push_back(0);
    }
    if (column == 0) p.kept_extents.push_back(1);
  }
  layout.kept_ndim = p.kept_extents.ndim();
  layout.reduced_ndim = p.reduced_extents.ndim();
  for (std::size_t k = 0; k < operands.size(); ++k) {
    ReductionArgument a;
    a.kind = operands[k].kind;
    a.dtype = operands[k].dtype;
    a.written = operands[k].written;
    if (a.kind == ArgumentKind::raw) {
      a.contiguous = operands[k].array.view.is_c_contiguous();
      a.ndim = std::max(operands[k].array.view.ndim(), 1);
    } else if (a.kind == ArgumentKind::element) {
      a.along = along_of(layout.columns ? p.along[k] : last(p.reduced[k]), a.dtype);
    } else if (a.kind == ArgumentKind::kept && host) {
      a.along = along_of(layout.columns ? p.along[k] : last(p.kept[k]), a.dtype);
    }
    layout.arguments.push_back(a);
  }
  p.acc_bytes = bytes_of_type(text.reduce_type);
  if (!host) {
    plan_gpu(p, split, text, outputs, count);
    return p;
  }
  p.parts = layout.columns ? host::plan_tiles(outputs / p.width, p.width, count)
                           : host::plan_outputs(outputs, count);
  if (p.parts.parts > 1) {
    p.second_items = layout.columns ? p.parts.tiles : outputs;
    p.partials = p.parts.items * p.parts.tile_width;
  }
  return p;
}

RuntimeKernel make_reduction(const ReductionText& text, CompiledKernels& compiled,
                             const char* kept_name, const std::vector<KernelOperand>& operands,
                             const Shape& shape, unsigned axes, Device device) {
  ReductionPlan plan = plan_reduction(text, operands, shape, axes, device.is_cpu());
  CompiledKernel function =
      compiled.get(plan.layout.key(), device, text.signature.name, text.options,
                   [&] { return reduction_source(text, plan.layout); });
  RuntimeKernel kernel(kept_name);
  kernel.module = function.module;
  kernel.function = function.function;
  kernel.host_function = function.host;
  kernel.start = RuntimeKernel::Start::early;
  kernel.size = plan.parts.items;
  kernel.second_size = plan.second_items;
  kernel.grain = plan.parts.grain;
  kernel.block.x = cuda::kBlock;
  kernel.grid.x = static_cast<unsigned>(plan.blocks.grid);
  kernel.scratch_bytes = static_cast<std::size_t>(plan.partials * plan.acc_bytes);
  kernel.arguments.push_back(pack(plan, operands, &kernel.scratch_offset));
  return kernel;
}

void launch_reduction(const ReductionText& text, CompiledKernels& compiled, const char* kept_name,
                      const std::vector<KernelOperand>& operands, const Shape& shape, unsigned axes,
                      Device device) {
  RuntimeKernel kernel = make_reduction(text, compiled, kept_name, operands, shape, axes, device);
  launch(kernel);
}

}  // namespace rensa::detail

// A reduction planned and launched. The plans are those of the library's own reductions.
#include "rensa/kernel/reduction_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "rensa/backend/cuda/launch_plan.h"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"

namespace rensa::detail {

namespace {

using cuda::ceil_div;

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

std::int64_t densest_stride(const ArrayView& view) {
  return std::abs(view.strides[view.ndim() - 1]);
}

void join_axes(std::vector<ArrayView*>& views, bool ordered) {
  int count = static_cast<int>(views.size());
  if (!ordered) return cuda::normalize_axes(views.data(), count);
  collapse_axes(views.data(), count);
  if (views[0]->ndim() > 0) return;
  for (ArrayView* view : views) {
    view->shape.push_back(1);
    view->strides.push_back(itemsize(view->dtype));
  }
}

/// The operands' axes taken apart.
class SplitOperands {
 public:
  std::vector<ArrayView> kept, reduced;  // by operand; the last one leads
  std::size_t lead;

  SplitOperands(const ReductionText& text, const std::vector<KernelOperand>& operands,
                const Shape& shape, unsigned axes)
      : lead(operands.size()) {
    kept.resize(operands.size() + 1);
    reduced.resize(operands.size() + 1);
    ArrayView all;  // what leads where there is no array
    all.shape = shape;
    all.strides = contiguous_strides(shape, itemsize(all.dtype));
    split(all, axes, shape, lead);
    std::int64_t largest = -1;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const ArrayView& view = operands[k].array.view;
      if (operands[k].kind == ArgumentKind::element) {
        ArrayView stretched = broadcast_view(view, shape);
        split(stretched, axes, shape, k);
        if (view.size() <= largest) continue;
        largest = view.size();
        split(stretched, axes, shape, lead);
      } else if (operands[k].kind == ArgumentKind::kept) {
        split(view, axes, shape, k);
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
  void split(const ArrayView& view, unsigned axes, const Shape& shape, std::size_t k) {
    kept[k] = reduced[k] = view;
    for (ArrayView* part : {&kept[k], &reduced[k]}) part->shape = part->strides = {};
    for (int axis = 0; axis < shape.ndim(); ++axis) {
      ArrayView& part = (axes >> axis & 1) ? reduced[k] : kept[k];
      part.shape.push_back(shape[axis]);
      part.strides.push_back(view.strides[axis]);
    }
  }
};

Along along_of(std::int64_t stride, Dtype dtype) {
  return stride == itemsize(dtype) ? Along::dense : stride == 0 ? Along::constant : Along::strided;
}

void plan_host(ReductionPlan& p) {
  constexpr std::int64_t kGrain = 32 << 10, kPart = 64 << 10, kColumns = 256, kRowBlock = 128;
  ReductionCounts& c = p.counts;
  std::int64_t second;
  if (!p.layout.columns) {
    c.slices = std::max<std::int64_t>(1, ceil_div(c.count, kPart));
    p.items = c.outputs * c.slices;
    p.grain = std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, c.count));
    p.partials = p.items;
    second = c.outputs;
  } else {
    std::int64_t tile_width = std::min(c.width, kColumns);
    c.tiles_x = ceil_div(c.width, kColumns);
    c.tiles = c.outputs / c.width * c.tiles_x;
    c.slice_rows = ceil_div(kPart / tile_width, kRowBlock) * kRowBlock;
    c.slices = std::max<std::int64_t>(1, ceil_div(c.count, c.slice_rows));
    p.items = c.tiles * c.slices;
    p.grain = std::max<std::int64_t>(
        1, kGrain / std::max<std::int64_t>(1, std::min(c.count, c.slice_rows) * tile_width));
    p.partials = p.items * tile_width;
    second = c.tiles;
  }
  if (c.slices > 1) p.grain = 1, p.second_items = second;
  else p.partials = 0;
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
bool vectors_are_aligned(const ReductionPlan& p, const SplitOperands& split) {
  for (std::size_t k = 0; k < p.layout.arguments.size(); ++k) {
    const ReductionArgument& a = p.layout.arguments[k];
    if (a.kind != ArgumentKind::element || a.along != Along::dense) continue;
    std::int64_t bytes = p.layout.width * itemsize(a.dtype);
    const ArrayView &kept = split.kept[k], &reduced = split.reduced[k];
    bool aligned = reinterpret_cast<std::intptr_t>(kept.data) % bytes == 0;
    for (int i = 0; i < kept.ndim() - (p.layout.columns ? 1 : 0); ++i) {
      aligned &= kept.shape[i] <= 1 || kept.strides[i] % bytes == 0;
    }
    for (int i = 0; i < reduced.ndim() - (p.layout.columns ? 0 : 1); ++i) {
      aligned &= reduced.shape[i] <= 1 || reduced.strides[i] % bytes == 0;
    }
    if (!aligned) return false;
  }
  return true;
}

void plan_gpu(ReductionPlan& p, const SplitOperands& split, const ReductionText& text) {
  ReductionCounts& c = p.counts;
  ReductionLayout& layout = p.layout;
  std::int64_t inner = last(p.reduced_extents);
  layout.width = vector_width(p, inner, text.width);
  layout.aligned = vectors_are_aligned(p, split);
  if (layout.columns) {
    cuda::ColumnsPlan plan =
        cuda::plan_columns(c.outputs / c.width, c.count, ceil_div(c.width, layout.width));
    c.lanes = plan.lanes;
    c.tiles = plan.tiles;
    c.tiles_x = plan.tiles_x;
    c.slices = plan.slices;
    c.slice_rows = plan.slice_rows;
    p.blocks = c.tiles * c.slices;
  } else {
    c.vectors = ceil_div(c.count, layout.width);
    cuda::RowsPlan plan = cuda::plan_rows(c.outputs, c.vectors);
    c.group = plan.group;
    c.slices = plan.slices;
    c.slice_vectors = plan.slice_vectors;
    p.blocks = c.slices > 1 ? c.outputs * c.slices : ceil_div(c.outputs, cuda::kBlock / c.group);
    last(p.reduced_extents) = ceil_div(inner, layout.width);
    for (std::size_t k = 0; k < layout.arguments.size(); ++k) {
      if (layout.arguments[k].kind == ArgumentKind::element) last(p.reduced[k]) *= layout.width;
    }
  }
  p.partials = c.slices > 1 ? c.slices * c.outputs : 0;
  layout.small = std::max({c.outputs, c.count, c.size}) < cuda::kMaxCount;
  if (p.blocks > cuda::kMaxCount) {
    throw NotImplementedError(fmt::format(
        "{}: {} outputs of {} elements each are too many for one kernel; reduce in parts",
        text.signature.name, c.outputs, c.count));
  }
}

KernelArgument pack(const ReductionPlan& p, const std::vector<KernelOperand>& operands,
                    std::size_t* scratch_offset) {
  KernelArgument argument;
  ArgumentWriter writer(argument);
  const ReductionCounts& c = p.counts;
  for (std::int64_t count : {c.outputs, c.count, c.slices, c.group, c.vectors, c.slice_vectors,
                             c.lanes, c.tiles, c.tiles_x, c.width, c.slice_rows, c.size}) {
    writer.put(count);
  }
  for (const Shape* extents : {&p.kept_extents, &p.reduced_extents}) {
    for (std::int64_t extent : *extents) {
      extent = std::max<std::int64_t>(extent, 1);
      if (p.layout.host || !p.layout.small) {
        writer.put(extent);
        writer.put(std::int64_t{0});
        continue;
      }
      std::uint64_t shift = 0, divisor = static_cast<std::uint64_t>(extent);
      while ((std::uint64_t{1} << shift) < divisor) ++shift;
      std::uint64_t magic =
          (std::uint64_t{1} << 32) * ((std::uint64_t{1} << shift) - divisor) / divisor + 1;
      for (std::uint64_t word : {divisor, magic, shift, std::uint64_t{0}}) {
        writer.put(static_cast<std::uint32_t>(word));
      }
    }
  }
  *scratch_offset = writer.size();
  writer.put(std::int64_t{0});
  writer.put(std::int64_t{0});
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
  ReductionCounts& c = p.counts;
  const ArrayView &kept = split.kept[split.lead], &reduced = split.reduced[split.lead];
  c.outputs = kept.shape.total();
  c.count = reduced.shape.total();
  c.size = c.outputs * c.count;
  ReductionLayout& layout = p.layout;
  layout.host = host;
  constexpr std::int64_t kShort = 16;  // on a CPU, fewer values are not worth an output's lanes
  bool dense_outputs = densest_stride(kept) < densest_stride(reduced);
  layout.columns = c.outputs > 1 && (c.count <= 1 || dense_outputs || (host && c.count < kShort));

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
    c.width = p.kept_extents[column];
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
  host ? plan_host(p) : plan_gpu(p, split, text);
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
  kernel.size = plan.items;
  kernel.second_size = plan.second_items;
  kernel.grain = plan.grain;
  kernel.block.x = cuda::kBlock;
  kernel.grid.x = static_cast<unsigned>(plan.blocks);
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

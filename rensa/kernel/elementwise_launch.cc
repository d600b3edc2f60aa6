// From a call's arguments to the kernel's struct and its launch.
#include "rensa/kernel/elementwise_launch.h"

#include <algorithm>
#include <limits>

#include "rensa/device/launcher.h"
#include "rensa/portable/launch_plan.h"

namespace rensa::detail {

namespace {

using operations::RuntimeKernel;

using cuda::kBlock;
constexpr std::int64_t kMostBlocks =
    cuda::kMultiprocessors * 256;  // beyond, a thread takes several elements
constexpr int kMostWidth = 8;

/// Whether packs of `width` elements of a row are one load each, or one element for all.
bool takes_packs(const ArrayView& view, std::int64_t width) {
  std::int64_t size = itemsize(view.dtype), inner = view.strides[view.ndim() - 1];
  if (view.shape[view.ndim() - 1] % width != 0 || (inner != size && inner != 0)) return false;
  if (inner == 0) return true;
  bool aligned = reinterpret_cast<std::uintptr_t>(view.data) % (width * size) == 0;
  for (int axis = 0; axis + 1 < view.ndim(); ++axis) {
    aligned &= view.strides[axis] % (width * size) == 0;
  }
  return aligned;
}

/// How many elements a thread takes at once: 16 bytes of the widest, where all arrays are aligned
/// to their share; elements of one row.
int pack_width(const std::vector<ArrayView*>& views, bool straight) {
  std::int64_t widest = 2;
  for (const ArrayView* view : views) {
    bool constant = !straight && view->strides[view->ndim() - 1] == 0;
    if (!constant) widest = std::max(widest, itemsize(view->dtype));
  }
  std::int64_t width = std::min<std::int64_t>(16 / widest, kMostWidth);
  if (straight) {
    for (const ArrayView* view : views) {
      auto bytes = static_cast<std::uintptr_t>(width * itemsize(view->dtype));
      if (reinterpret_cast<std::uintptr_t>(view->data) % bytes != 0) return 1;
    }
    return static_cast<int>(width);
  }
  auto fits = [&](const ArrayView* view) { return takes_packs(*view, width); };
  while (width > 1 && !std::all_of(views.begin(), views.end(), fits)) width /= 2;
  return static_cast<int>(width);
}

operations::KernelArgument pack(const ElementwiseLayout& layout,
                                const std::vector<KernelOperand>& operands,
                                const std::vector<ArrayView>& views, const Shape& extents,
                                std::int64_t size) {
  operations::KernelArgument argument;
  ArgumentWriter writer(argument);
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const ArgumentLayout& a = layout.arguments[k];
    if (a.kind == ArgumentKind::number) continue;
    writer.pointer(operands[k].array, operands[k].written);
    if (layout.has_strides(k)) writer.integers(views[k].strides);
    if (a.kind == ArgumentKind::raw && !a.contiguous) {
      writer.integers(views[k].shape);
      writer.integers(views[k].strides);
    }
  }
  writer.integers(extents);
  writer.put(size);
  for (const KernelOperand& operand : operands) {
    if (operand.kind == ArgumentKind::number) writer.number(operand.number, operand.dtype);
  }
  writer.align();
  return argument;
}

/// Which arguments need no strides, and which have one element for a pack.
void find_rows(const std::vector<KernelOperand>& operands, const std::vector<ArrayView>& views,
               ElementwiseLayout& layout) {
  if (layout.straight) return;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    if (operands[k].kind != ArgumentKind::element) continue;
    layout.arguments[k].flat = views[k].is_c_contiguous();
    layout.arguments[k].constant = layout.width > 1 && views[k].strides[layout.ndim - 1] == 0;
  }
}

}  // namespace

ElementwiseLayout find_layout(const std::vector<KernelOperand>& operands, const Shape& shape,
                              bool host, std::vector<ArrayView>* views, Shape* extents) {
  ElementwiseLayout layout;
  layout.host = host;
  layout.arguments.resize(operands.size());
  views->resize(operands.size());
  std::vector<ArrayView*> loop;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    ArgumentLayout& argument = layout.arguments[k];
    argument.kind = operands[k].kind;
    argument.dtype = operands[k].dtype;
    argument.loaded = operands[k].loaded;
    if (argument.kind == ArgumentKind::number) continue;
    ArrayView& view = (*views)[k] = operands[k].array.view;
    if (argument.kind == ArgumentKind::raw) {
      argument.contiguous = view.is_c_contiguous();
      argument.ndim = std::max(view.ndim(), 1);
    } else {
      if (view.shape != shape) view = broadcast_view(view, shape);
      loop.push_back(&view);
    }
  }
  std::int64_t size = shape.total();
  if (!loop.empty()) collapse_axes(loop.data(), static_cast<int>(loop.size()));
  *extents = loop.empty() ? Shape{size} : loop[0]->shape;
  layout.straight = extents->ndim() <= 1;
  for (ArrayView* view : loop) {
    layout.straight &= view->shape.empty() || view->strides[0] == itemsize(view->dtype);
  }
  if (extents->empty()) {  // one element
    *extents = Shape{size};
    for (ArrayView* view : loop) view->strides = Shape{0};
  }
  layout.ndim = extents->ndim();
  // On a CPU the compiler finds the processor's own vectors.
  if (!host && !loop.empty()) {
    layout.width = pack_width(loop, layout.straight);
    find_rows(operands, *views, layout);
  }
  // A thread's index goes beyond the size by at most the whole grid, and looks as far ahead.
  layout.small =
      size < std::numeric_limits<std::int32_t>::max() - 2 * kMostBlocks * kBlock * kMostWidth;
  return layout;
}

RuntimeKernel make_elementwise(const ElementwiseText& text, CompiledKernels& compiled,
                               const char* kept_name, const std::vector<KernelOperand>& operands,
                               const Shape& shape, Device device) {
  std::vector<ArrayView> views;
  Shape extents;
  ElementwiseLayout layout = find_layout(operands, shape, device.is_cpu(), &views, &extents);
  CompiledKernel function = compiled.get(layout.key(), device, text.signature.name, text.options,
                                         [&] { return elementwise_source(text, layout); });
  RuntimeKernel kernel(kept_name);
  kernel.module = function.module;
  kernel.function = function.function;
  kernel.host_function = function.host;
  kernel.start = RuntimeKernel::Start::early;
  kernel.size = shape.total();
  kernel.block.x = kBlock;
  std::int64_t block = std::int64_t{kBlock} * layout.width;
  kernel.grid.x = static_cast<unsigned>(std::min((kernel.size + block - 1) / block, kMostBlocks));
  kernel.arguments.push_back(pack(layout, operands, views, extents, kernel.size));
  return kernel;
}

void launch_elementwise(const ElementwiseText& text, CompiledKernels& compiled,
                        const char* kept_name, const std::vector<KernelOperand>& operands,
                        const Shape& shape, Device device) {
  RuntimeKernel kernel = make_elementwise(text, compiled, kept_name, operands, shape, device);
  launch(kernel);
}

}  // namespace rensa::detail

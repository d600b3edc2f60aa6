// Pooling over windows: what windows there are, and the nodes, whose backward are each other.
#include "rensa/functions/pooling.h"

#include <fmt/format.h>

#include <limits>
#include <string>
#include <utility>

#include "rensa/array/creation.h"
#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"
#include "rensa/core/integers.h"
#include "rensa/device/launcher.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/operations/pooling/pooling.h"

namespace rensa::functions {

namespace {

using operations::kMostWindowAxes;

/// The windows over (n, channels, spatial axes...), and how arrays lie.
struct Windows {
  std::vector<WindowAxis> axes;
  PoolingWeight weight = PoolingWeight::one;
  bool channels_last = false;  // in memory

  /// The shape of what has `elements`, or the windows, along the spatial axes.
  Shape shape(const Shape& like, bool elements) const {
    Shape result{like[0], like[1]};
    for (const WindowAxis& a : axes) result.push_back(elements ? a.in : a.out);
    return result;
  }
  /// Dense, in the order of memory: x itself where it is that.
  Array folded(const Array& x) const {
    return channels_last ? last(x).ascontiguous() : x.ascontiguous();
  }
  Array new_folded(const Shape& shape, Dtype dtype, Device device) const {
    if (!channels_last) return xp::empty(shape, dtype, device);
    Shape turned{shape[0]};
    for (int i = 2; i < shape.ndim(); ++i) turned.push_back(shape[i]);
    turned.push_back(shape[1]);
    return xp::empty(turned, dtype, device);
  }
  Array unfolded(const Array& x) const {
    if (!channels_last) return x;
    Shape order{0, x.ndim() - 1};
    for (int i = 1; i + 1 < x.ndim(); ++i) order.push_back(i);
    return x.transpose(order);
  }
  operations::PoolingShape operation(const Shape& x, PoolingMode mode) const {
    operations::PoolingShape s;
    s.outer = channels_last ? x[0] : x[0] * x[1];
    s.inner = channels_last ? x[1] : 1;
    auto count = static_cast<int>(axes.size());
    s.ndim = count <= 2 ? 2 : count == 3 ? 3 : kMostWindowAxes;
    for (int i = 0; i < count; ++i) {
      s.axis[s.ndim - count + i] = axes[static_cast<std::size_t>(i)];
    }
    s.mode = mode;
    s.weight = weight;
    return s;
  }

  /// None of windows that share an axis.
  std::optional<FunctionAttributes> attributes() const {
    Shape ksize, stride, pad;
    for (const WindowAxis& a : axes) {
      if (a.stride == 0) return std::nullopt;
      ksize.push_back(a.size), stride.push_back(a.stride), pad.push_back(a.pad);
    }
    return FunctionAttributes{.integers = {{"count_include_pad", weight == PoolingWeight::window}},
                              .lists = {{"ksize", ksize}, {"stride", stride}, {"pad", pad}}};
  }

  static Array last(const Array& x) {
    Shape order{0};
    for (int i = 2; i < x.ndim(); ++i) order.push_back(i);
    order.push_back(1);
    return x.transpose(order);
  }
};

/// Sums, or the elements at positions, of windows.
class PoolNode final : public FunctionNode {
 public:
  PoolNode(const char* name, Windows windows, Array positions)
      : FunctionNode(name), windows_(std::move(windows)), positions_(std::move(positions)) {}
  Arrays forward(const Arrays& inputs) override;
  Variables backward(const Indexes&, const Variables& gy) override;
  /// Of means.
  std::optional<FunctionAttributes> attributes() const override {
    bool means = !positions_.defined() && windows_.weight != PoolingWeight::one;
    return means ? windows_.attributes() : std::nullopt;
  }

 private:
  Windows windows_;
  Array positions_;  // undefined: sums
};

/// The reverse.
class SpreadNode final : public FunctionNode {
 public:
  SpreadNode(const char* name, Windows windows, Array positions)
      : FunctionNode(name), windows_(std::move(windows)), positions_(std::move(positions)) {}

  Arrays forward(const Arrays& inputs) override {
    const Array& gy = inputs[0];
    Array from = windows_.folded(gy);
    Array to = windows_.new_folded(windows_.shape(gy.shape(), true), gy.dtype(), gy.device());
    operations::PoolingSpread op(name());
    op.shape =
        windows_.operation(gy.shape(), positions_.defined() ? PoolingMode::at : PoolingMode::sum);
    op.gy = from.operand();
    if (positions_.defined()) op.positions = positions_.operand();
    op.gx = to.operand();
    if (to.size() > 0) launch(op);
    return {windows_.unfolded(to)};
  }
  Variables backward(const Indexes&, const Variables& ggx) override {
    return {apply_node<PoolNode>(ggx[0])};
  }

 private:
  template <class Node> Variable apply_node(const Variable& x) const {
    return rensa::apply<Node>({x}, name(), windows_, positions_)[0];
  }
  Windows windows_;
  Array positions_;
};

Arrays PoolNode::forward(const Arrays& inputs) {
  const Array& x = inputs[0];
  Array from = windows_.folded(x);
  Array to = windows_.new_folded(windows_.shape(x.shape(), false), x.dtype(), x.device());
  operations::Pooling op(name());
  op.shape =
      windows_.operation(x.shape(), positions_.defined() ? PoolingMode::at : PoolingMode::sum);
  op.x = from.operand();
  if (positions_.defined()) op.positions = positions_.operand();
  op.y = to.operand();
  if (to.size() > 0) launch(op);
  return {windows_.unfolded(to)};
}

Variables PoolNode::backward(const Indexes&, const Variables& gy) {
  return {rensa::apply<SpreadNode>({gy[0]}, name(), windows_, positions_)[0]};
}

class MaxPoolNode final : public FunctionNode {
 public:
  MaxPoolNode(const char* name, Windows windows)
      : FunctionNode(name), windows_(std::move(windows)) {}

  Arrays forward(const Arrays& inputs) override {
    const Array& x = inputs[0];
    Array from = windows_.folded(x);
    Shape shape = windows_.shape(x.shape(), false);
    std::int64_t places = 1;
    for (const WindowAxis& a : windows_.axes) places *= a.size;
    positions_ = windows_.new_folded(shape, places <= 256 ? uint8 : int32, x.device());
    Array to = windows_.new_folded(shape, x.dtype(), x.device());
    operations::Pooling op(name());
    op.shape = windows_.operation(x.shape(), PoolingMode::max);
    op.x = from.operand();
    op.y = to.operand();
    op.positions = positions_.operand();
    if (to.size() > 0) launch(op);
    return {windows_.unfolded(to)};
  }
  Variables backward(const Indexes&, const Variables& gy) override {
    return {rensa::apply<SpreadNode>({gy[0]}, name(), windows_, positions_)[0]};
  }
  /// Of windows, in the order of the result's axes.
  Array indices() const { return windows_.unfolded(positions_).astype(int32).ascontiguous(); }
  std::optional<FunctionAttributes> attributes() const override { return windows_.attributes(); }

 private:
  Windows windows_;
  Array positions_;
};

// --- which windows there are ---

std::int64_t extent_of(const char* function, const char* what, const AxisList& list, int i,
                       int count, std::int64_t least) {
  const Shape& values = list.values();
  if (values.ndim() != 1 && values.ndim() != count) {
    throw ValueError(
        fmt::format("{}: {} numbers as {} for {} spatial axes: one for all of them, "
                    "or one for each",
                    function, values.ndim(), what, count));
  }
  std::int64_t value = values[values.ndim() == 1 ? 0 : i];
  if (value < least || value > std::numeric_limits<int>::max() / 4) {
    throw ValueError(fmt::format("{}: {} {}", function, what, value));
  }
  return value;
}

int checked_axes(const char* function, const Variable& x, int expected) {
  int count = x.ndim() - 2;
  if (dtype_kind(x.dtype()) != 'f') {
    throw DtypeError(fmt::format("{}: x {} must be floating; cast with astype", function,
                                 x.array().view().describe()));
  }
  if (count < 1 || count > kMostWindowAxes || (expected > 0 && count != expected)) {
    std::string wanted = expected > 0 ? std::to_string(expected) : "one to six";
    throw ShapeError(fmt::format("{}: x {} must be (n, channels, ...) with {} spatial axes",
                                 function, x.shape().str(), wanted));
  }
  for (std::int64_t n : x.shape()) {
    if (n <= std::numeric_limits<int>::max() / 4) continue;
    throw NotImplementedError(fmt::format("{}: x {} is too large", function, x.shape().str()));
  }
  return count;
}

bool lies_channels_last(const Array& x) {
  return !x.is_contiguous() && Windows::last(x).is_contiguous();
}

/// ksize, stride and pad as they were given.
struct Given {
  const AxisList &ksize, &stride, &pad;

  WindowAxis axis(const char* function, int i, int count) const {
    WindowAxis a;
    a.size = static_cast<int>(extent_of(function, "ksize", ksize, i, count, 1));
    const AxisList& steps = stride.given() ? stride : ksize;
    a.stride = static_cast<int>(extent_of(function, "stride", steps, i, count, 1));
    a.pad = pad.given() ? static_cast<int>(extent_of(function, "pad", pad, i, count, 0)) : 0;
    return a;
  }
};

std::int64_t windows_over(std::int64_t n, const WindowAxis& a, bool cover_all) {
  std::int64_t room = n + 2 * std::int64_t{a.pad} - a.size + (cover_all ? a.stride - 1 : 0);
  return room < 0 ? 0 : room / a.stride + 1;
}

/// Throws NotImplementedError where the kernels cannot count a window's places.
void add_axis(const char* function, Windows& windows, const WindowAxis& axis) {
  windows.axes.push_back(axis);
  std::int64_t places = 1;
  for (const WindowAxis& a : windows.axes) places *= a.size;
  if (places > std::numeric_limits<int>::max()) {
    throw NotImplementedError(fmt::format("{}: a window of {} places", function, places));
  }
}

Windows windows_of(const char* function, const Variable& x, int expected, const Given& given,
                   bool cover_all) {
  int count = checked_axes(function, x, expected);
  Windows windows;
  for (int i = 0; i < count; ++i) {
    WindowAxis a = given.axis(function, i, count);
    std::int64_t n = x.shape(i + 2), out = windows_over(n, a, cover_all);
    if (out < 1 || n == 0) {
      throw ShapeError(fmt::format(
          "{}: a window of {} and x {}: along axis {} it is larger than {} elements with {} of "
          "padding on both sides",
          function, a.size, x.shape().str(), i + 2, n, a.pad));
    }
    a.in = static_cast<int>(n);
    a.out = static_cast<int>(out);
    add_axis(function, windows, a);
  }
  windows.channels_last = lies_channels_last(x.array());
  return windows;
}

Variable max_pooling(const char* function, const Variable& x, int expected, const Given& given,
                     bool cover_all, Array* return_indices) {
  auto node =
      std::make_shared<MaxPoolNode>(function, windows_of(function, x, expected, given, cover_all));
  Variable y = node->apply({x})[0];
  if (return_indices) *return_indices = node->indices();
  return y;
}

/// Throws ShapeError where the first or the last window has only padding: no mean.
void check_covered(const char* function, const Variable& x, const Windows& windows) {
  for (std::size_t i = 0; i < windows.axes.size(); ++i) {
    const WindowAxis& a = windows.axes[i];
    if (a.size > a.pad && std::int64_t{a.out - 1} * a.stride - a.pad < a.in) continue;
    throw ShapeError(
        fmt::format("{}: x {}: along axis {} a window of {} with a stride of {} lies in the {} of "
                    "padding only, and has no elements to be the mean of; give a pad_value of 0",
                    function, x.shape().str(), i + 2, a.size, a.stride, a.pad));
  }
}

Variable average_pooling(const char* function, const Variable& x, int expected, const Given& given,
                         std::optional<double> pad_value) {
  if (pad_value && *pad_value != 0) {
    throw ValueError(
        fmt::format("{}: a pad_value of {}, which must be 0 or none", function, *pad_value));
  }
  Windows windows = windows_of(function, x, expected, given, false);
  if (!pad_value) check_covered(function, x, windows);
  windows.weight = pad_value ? PoolingWeight::window : PoolingWeight::covered;
  return apply<PoolNode>({x}, function, std::move(windows), Array())[0];
}

Windows adaptive_windows(const char* function, const Variable& x, const AxisList& size) {
  int count = checked_axes(function, x, 2);
  if (!size.given()) throw ValueError(fmt::format("{}: no size", function));
  Windows windows;
  for (int i = 0; i < count; ++i) {
    WindowAxis a;
    a.in = static_cast<int>(x.shape(i + 2));
    a.out = static_cast<int>(extent_of(function, "size", size, i, count, 1));
    if (a.in == 0) {
      throw ShapeError(
          fmt::format("{}: x {} has no elements along axis {}", function, x.shape().str(), i + 2));
    }
    a.stride = 0;
    a.size = static_cast<int>(ceil_div(a.in, a.out) + 1);
    add_axis(function, windows, a);
  }
  windows.weight = PoolingWeight::covered;
  windows.channels_last = lies_channels_last(x.array());
  return windows;
}

/// The windows whose sums x would be.
Windows windows_before(const char* function, const Variable& x, int expected, const Given& given,
                       const AxisList& outsize, bool cover_all) {
  int count = checked_axes(function, x, expected);
  Windows windows;
  for (int i = 0; i < count; ++i) {
    WindowAxis a = given.axis(function, i, count);
    std::int64_t n = x.shape(i + 2), in = 0, least = 0;
    if (outsize.given()) {
      in = extent_of(function, "outsize", outsize, i, count, least = 1);
    } else {  // padding may take all of it
      in = a.stride * (n - 1) + a.size - 2 * std::int64_t{a.pad} - (cover_all ? a.stride - 1 : 0);
    }
    if (in < least || in > std::numeric_limits<int>::max() / 4 ||
        (outsize.given() && windows_over(in, a, cover_all) != n)) {
      throw ShapeError(fmt::format(
          "{}: x {} has {} elements along axis {}, and of {} windows of {} make {}, with a stride "
          "of {} and {} of padding",
          function, x.shape().str(), n, i + 2, in, a.size, windows_over(in, a, cover_all), a.stride,
          a.pad));
    }
    a.in = static_cast<int>(in);
    a.out = static_cast<int>(n);
    add_axis(function, windows, a);
  }
  windows.channels_last = lies_channels_last(x.array());
  return windows;
}

Variable unpooling(const char* function, const Variable& x, int expected, const Given& given,
                   const AxisList& outsize, bool cover_all) {
  Windows windows = windows_before(function, x, expected, given, outsize, cover_all);
  return apply<SpreadNode>({x}, function, std::move(windows), Array())[0];
}

}  // namespace

#define RENSA_POOLINGS(axes, count)                                                              \
  Variable max_pooling_##axes(const Variable& x, const AxisList& ksize, const AxisList& stride,  \
                              const AxisList& pad, bool cover_all, Array* return_indices) {      \
    return max_pooling("max_pooling_" #axes, x, count, {ksize, stride, pad}, cover_all,          \
                       return_indices);                                                          \
  }                                                                                              \
  Variable average_pooling_##axes(const Variable& x, const AxisList& ksize,                      \
                                  const AxisList& stride, const AxisList& pad,                   \
                                  std::optional<double> pad_value) {                             \
    return average_pooling("average_pooling_" #axes, x, count, {ksize, stride, pad}, pad_value); \
  }                                                                                              \
  Variable unpooling_##axes(const Variable& x, const AxisList& ksize, const AxisList& stride,    \
                            const AxisList& pad, const AxisList& outsize, bool cover_all) {      \
    return unpooling("unpooling_" #axes, x, count, {ksize, stride, pad}, outsize, cover_all);    \
  }
RENSA_POOLINGS(1d, 1)
RENSA_POOLINGS(2d, 2)
RENSA_POOLINGS(3d, 3)
RENSA_POOLINGS(nd, 0)
#undef RENSA_POOLINGS

Variable adaptive_average_pooling_2d(const Variable& x, const AxisList& size) {
  constexpr const char* name = "adaptive_average_pooling_2d";
  return apply<PoolNode>({x}, name, adaptive_windows(name, x, size), Array())[0];
}

Variable adaptive_max_pooling_2d(const Variable& x, const AxisList& size) {
  constexpr const char* name = "adaptive_max_pooling_2d";
  return apply<MaxPoolNode>({x}, name, adaptive_windows(name, x, size))[0];
}

Variable upsampling_2d(const Variable& x, const Array& indexes, const AxisList& ksize,
                       const AxisList& stride, const AxisList& pad, const AxisList& outsize,
                       bool cover_all) {
  constexpr const char* name = "upsampling_2d";
  Windows windows = windows_before(name, x, 2, {ksize, stride, pad}, outsize, cover_all);
  check_same_device(name, x.array(), indexes);
  if (indexes.shape() != x.shape()) {
    throw ShapeError(fmt::format("{}: indexes {} and x {} must have one shape", name,
                                 indexes.shape().str(), x.shape().str()));
  }
  char kind = dtype_kind(indexes.dtype());
  if (kind != 'i' && kind != 'u') {
    throw DtypeError(
        fmt::format("{}: indexes {} must be integer", name, indexes.view().describe()));
  }
  Array positions = windows.folded(indexes.astype(int32));
  return apply<SpreadNode>({x}, name, std::move(windows), positions)[0];
}

Variable spatial_pyramid_pooling_2d(const Variable& x, int pyramid_height) {
  constexpr const char* name = "spatial_pyramid_pooling_2d";
  if (pyramid_height < 1 || pyramid_height > 16) {
    throw ValueError(fmt::format("{}: a pyramid_height of {}", name, pyramid_height));
  }
  checked_axes(name, x, 2);
  Variables levels;
  for (int level = 0; level < pyramid_height; ++level) {
    Shape ksize, pad;
    for (int i = 2; i < 4; ++i) {
      std::int64_t bins = std::int64_t{1} << level, size = ceil_div(x.shape(i), bins);
      ksize.push_back(size);
      pad.push_back((size * bins - x.shape(i)) / 2);
    }
    Variable y = max_pooling(name, x, 2, {ksize, {}, pad}, true, nullptr);
    levels.push_back(reshape(y, {y.shape(0), y.shape(1) * y.shape(2) * y.shape(3), 1, 1}));
  }
  return concat(levels);
}

}  // namespace rensa::functions

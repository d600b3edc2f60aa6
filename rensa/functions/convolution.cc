// Convolutions: forward and backward.
#include "rensa/functions/convolution.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "rensa/array/creation.h"
#include "rensa/array/internal.h"
#include "rensa/array/manipulation.h"
#include "rensa/array/routines.h"
#include "rensa/autograd/autocast.h"
#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/launcher.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/image_functions.h"
#include "rensa/functions/math_functions.h"
#include "rensa/functions/operations/convolution/convolution.h"
#include "rensa/functions/reduction_functions.h"

namespace rensa::functions {

namespace {

using operations::ConvolutionDirection;

/// What the three directions have in common.
struct Settings {
  const char* name;
  Shape stride, pad, dilate;
  std::int64_t groups;
  int axes() const { return stride.size(); }
};

/// How far a kernel reaches along an axis.
std::int64_t reach(const Settings& s, const Shape& w, int axis) {
  return (w[2 + axis] - 1) * s.dilate[axis] + 1;
}

// --- Layouts ---

/// The order of axes in memory: itself, or the channels last.
Shape memory_order(int ndim, bool channels_last) {
  Shape order;
  for (int i = 0; i < ndim; ++i) {
    if (!channels_last || i != 1) order.push_back(i);
  }
  if (channels_last) order.push_back(1);
  return order;
}

/// Axis i of the array is axis order[i] of its memory's.
Shape inverse(const Shape& order) {
  Shape result = order;
  for (int i = 0; i < order.size(); ++i) result[static_cast<int>(order[i])] = i;
  return result;
}

bool lies_channels_last(const Array& a) {
  return !a.is_contiguous() && a.transpose(memory_order(a.ndim(), true)).is_contiguous();
}

/// `a` in C order, beginning at a multiple of 16 bytes, as vectors do: a plan for other addresses
/// would be another one, and slower. A copy where it lies otherwise.
Array packed(const Array& a) {
  Array plain = a.ascontiguous();
  return reinterpret_cast<std::uintptr_t>(plain.data()) % 16 == 0 ? plain : plain.copy();
}

/// `a`, or a copy where it lies otherwise.
Array in_layout(const Array& a, bool channels_last) {
  Shape order = memory_order(a.ndim(), channels_last);
  return packed(a.transpose(order)).transpose(inverse(order));
}

Array new_in_layout(const Shape& shape, const Array& beside, bool channels_last) {
  Shape order = memory_order(shape.size(), channels_last), permuted;
  for (std::int64_t axis : order) permuted.push_back(shape[static_cast<int>(axis)]);
  return xp::empty(permuted, beside.dtype(), beside.device()).transpose(inverse(order));
}

// --- Windows side by side ---

/// Whether the input gradient of y and w, of `shape`, is one product whose elements only move: the
/// windows lie side by side and leave nothing out. Of what is computed in all digits: cuDNN's
/// engines for that, without tensor cores, are slower (7 times, along 3 axes) where they have to
/// repeat their bits.
bool lies_in_tiles(const Settings& s, const Array& y, const Array& w, const Shape& shape) {
  bool exact = y.dtype() == float64 || (y.dtype() == float32 && !config().tf32);
  if (!y.device().is_cuda() || !exact || s.groups != 1 || 2 * s.axes() + 2 > kMaxNdim) return false;
  bool one_place = true;
  for (int i = 0; i < s.axes(); ++i) {
    std::int64_t length = w.shape(2 + i);
    bool beside = s.stride[i] == length && s.pad[i] == 0 && reach(s, w.shape(), i) == length;
    if (!beside || shape[2 + i] != y.shape(2 + i) * length) return false;
    one_place = one_place && length == 1;
  }
  return !one_place;
}

/// Writes x where lies_in_tiles() holds. All are dense, in one layout. The product of some images
/// at a time takes little memory, from which it is moved while a GPU's cache has it.
void put_tiles(const Settings& s, const Array& y, const Array& w, const Array& x,
               bool channels_last) {
  constexpr std::int64_t kScratch = std::int64_t{32} << 20;
  const int axes = s.axes(), first_place = channels_last ? 1 : 2 + axes,
            first_tap = channels_last ? 1 + axes : 2;
  std::int64_t images = y.shape(0), channels = y.shape(1), taps = w.size() / channels;
  std::int64_t places = y.size() / (images * channels);
  // Axes of the product, of which those of places (y's) and of taps (w's) are apart, and of x,
  // where a place's taps are behind it.
  Shape apart = Shape::filled(2 + 2 * axes, x.shape(1)), beside = apart, turn = apart;
  if (channels_last) turn[1 + 2 * axes] = 1 + 2 * axes;
  else turn[1] = 1;
  turn[0] = 0;
  for (int i = 0; i < axes; ++i) {
    int target = (channels_last ? 1 : 2) + 2 * i;
    turn[target] = first_place + i, turn[target + 1] = first_tap + i;
    beside[target] = apart[first_place + i] = y.shape(2 + i);
    beside[target + 1] = apart[first_tap + i] = w.shape(2 + i);
  }
  beside[0] = images;
  Shape order = memory_order(x.ndim(), channels_last);
  Array target = x.transpose(order).reshape(beside);
  Array from = y.transpose(order).reshape(channels_last ? Shape{images, places, channels}
                                                        : Shape{images, channels, places});
  Array filters = w.transpose(order).reshape({channels, taps});
  std::int64_t together =
      std::clamp<std::int64_t>(kScratch / (taps * places * itemsize(x.dtype())), 1, images);
  Array product =
      xp::empty({together, channels_last ? places : taps, channels_last ? taps : places}, x.dtype(),
                x.device());
  for (std::int64_t begin = 0; begin < images; begin += together) {
    apart[0] = std::min(together, images - begin);
    Array part = rensa::detail::slice_along(from, 0, begin, apart[0]);
    Array made = rensa::detail::slice_along(product, 0, 0, apart[0]);
    if (channels_last) (void)xp::matmul(part, filters, {.out = made});
    else (void)xp::matmul(filters.transpose(), part, {.out = made});
    xp::copyto(rensa::detail::slice_along(target, 0, begin, apart[0]),
               made.reshape(apart).transpose(turn));
  }
}

// --- The work ---

/// Adds the bias, a number for each channel, to what was made.
void add_bias(Array result, const Array& bias) {
  Shape row = Shape::filled(result.ndim(), 1);
  row[1] = bias.size();
  result += bias.reshape(row);
}

/// The result, of `shape`, of one direction: a and b are those of x, w and y that it reads. `bias`
/// may be null.
Array compute(const Settings& settings, ConvolutionDirection direction, const Array& a,
              const Array& b, const Array* bias, const Shape& shape) {
  Device device = a.device();
  bool channels_last = lies_channels_last(a) || lies_channels_last(b);
  Array result = new_in_layout(shape, a, channels_last);
  if (result.size() == 0) return result;
  if (a.size() == 0 || b.size() == 0) {  // sums of nothing
    result.fill(0);
    if (bias) add_bias(result, *bias);
    return result;
  }
  Array first = device.is_cuda() ? in_layout(a, channels_last) : a;
  Array second = device.is_cuda() ? in_layout(b, channels_last) : b;
  if (device.is_cuda() && settings.axes() > 3) {
    throw NotImplementedError(
        fmt::format("{}: {} and {}: cuDNN has convolutions of 1 to 3 spatial axes", settings.name,
                    a.view().describe(), b.view().describe()));
  }
  if (direction == ConvolutionDirection::input_gradient && lies_in_tiles(settings, a, b, shape)) {
    put_tiles(settings, first, second, result, channels_last);
    if (bias) add_bias(result, *bias);
    return result;
  }
  operations::Convolution op(settings.name, direction);
  op.stride = settings.stride;
  op.pad = settings.pad;
  op.dilate = settings.dilate;
  op.groups = settings.groups;
  op.channels_last = channels_last;
  op.tf32 = config().tf32;
  op.autotune = config().autotune;
  op.deterministic = config().cudnn_deterministic;
  bool forward = direction == ConvolutionDirection::forward;
  bool weights = direction == ConvolutionDirection::weight_gradient;
  op.x = (weights || forward ? first : result).operand();
  op.w = (weights ? result : second).operand();
  op.y = (weights ? second : forward ? result : first).operand();
  Array row;  // keeps the bias while the operation is launched
  if (bias) op.bias = (row = device.is_cuda() ? packed(*bias) : *bias).operand();
  (void)op.workspace_bytes();  // chooses the plan, which what records the operation copies
  launch(op);
  return result;
}

// --- Nodes ---

/// One direction, which the two others are the gradients of. A bias, the third input, belongs to
/// the channels of the result.
class Convolution final : public FunctionNode {
 public:
  Convolution(const Settings& settings, ConvolutionDirection direction, const Shape& result)
      : FunctionNode(settings.name), settings_(settings), direction_(direction), result_(result) {}

  Arrays forward(const Arrays& inputs) override {
    retain_inputs({0, 1});
    const Array* bias = inputs.size() == 3 ? &inputs[2] : nullptr;
    return {compute(settings_, direction_, inputs[0], inputs[1], bias, result_)};
  }

  /// Each element of what forward would give is a sum over a filter.
  std::int64_t multiply_adds(const Arrays& inputs, const Arrays& outputs) const override {
    bool forward = direction_ == ConvolutionDirection::forward,
         of_weight = direction_ == ConvolutionDirection::weight_gradient;
    const Array &w = of_weight ? outputs[0] : inputs[1],
                &y = forward ? outputs[0] : inputs[of_weight ? 1 : 0];
    return w.size() == 0 ? 0 : y.size() * (w.size() / w.shape(0));
  }

  Variables backward(const Indexes& targets, const Variables& gy) override {
    Variables kept = get_retained_inputs(), gradients;
    for (int i : targets) {
      if (i == 2) gradients.push_back(sum(gy[0], bias_axes()));
      else gradients.push_back(gradient(i, kept, gy[0]));
    }
    return gradients;
  }

  std::optional<FunctionAttributes> attributes() const override {
    if (direction_ != ConvolutionDirection::forward) return std::nullopt;
    return FunctionAttributes{
        .integers = {{"groups", settings_.groups}},
        .lists = {
            {"stride", settings_.stride}, {"pad", settings_.pad}, {"dilate", settings_.dilate}}};
  }

 private:
  Shape bias_axes() const {
    Shape axes = 0;
    for (int i = 2; i < result_.size(); ++i) axes.push_back(i);
    return axes;
  }

  Variable gradient(int i, const Variables& kept, const Variable& g) const {
    auto call = [&](ConvolutionDirection direction, const Variable& a, const Variable& b) {
      const Shape& shape = kept[static_cast<std::size_t>(i)].shape();
      return rensa::apply<Convolution>({a, b}, settings_, direction, shape)[0];
    };
    switch (direction_) {
      case ConvolutionDirection::forward:  // of x and w
        if (i == 0) return call(ConvolutionDirection::input_gradient, g, kept[1]);
        return call(ConvolutionDirection::weight_gradient, kept[0], g);
      case ConvolutionDirection::input_gradient:  // of y and w
        if (i == 0) return call(ConvolutionDirection::forward, g, kept[1]);
        return call(ConvolutionDirection::weight_gradient, g, kept[0]);
      default:  // of x and y
        if (i == 0) return call(ConvolutionDirection::input_gradient, kept[1], g);
        return call(ConvolutionDirection::forward, kept[0], g);
    }
  }

  Settings settings_;
  ConvolutionDirection direction_;
  Shape result_;
};

// --- Checks ---

std::string described(const char* name, const Variable& x, const Variable& W, const Variable& b) {
  std::string text = fmt::format("{}: x {} and W {}", name, x.array().view().describe(),
                                 W.array().view().describe());
  if (b.defined()) text += fmt::format(" and b {}", b.array().view().describe());
  return text;
}
std::string described(const Settings& s, const Variable& x, const Variable& W, const Variable& b) {
  return described(s.name, x, W, b);
}

void check_dtypes(const char* name, const Variable& x, const Variable& W, const Variable& b) {
  bool one_dtype = dtype_kind(x.dtype()) == 'f' && W.dtype() == x.dtype() &&
                   (!b.defined() || b.dtype() == x.dtype());
  if (one_dtype) return;
  throw DtypeError(described(name, x, W, b) +
                   ": all must be of one floating dtype; use F::cast or astype");
}

Shape per_axis(const char* name, const char* what, const Shape& given, int axes, int least) {
  Shape result = given.size() == 1 ? Shape::filled(axes, given[0]) : given;
  if (result.size() != axes) {
    throw ShapeError(fmt::format("{}: {} {} is neither one number nor one for each of {} axes",
                                 name, what, given.str(), axes));
  }
  for (std::int64_t value : result) {
    if (value < least) {
      throw ValueError(
          fmt::format("{}: {} {}; it has to be at least {}", name, what, given.str(), least));
    }
  }
  return result;
}

/// Settings for x and W, which have `axes` spatial axes (any number for 0). Throws what does not
/// depend on the direction.
template <class Options>
Settings settings_of(const char* name, int axes, const Variable& x, const Variable& W,
                     const Variable& b, const Options& o) {
  Settings s{name, {}, {}, {}, o.groups};
  if (axes == 0) axes = x.ndim() - 2;
  if (axes < 1 || x.ndim() != axes + 2 || W.ndim() != axes + 2) {
    throw ShapeError(fmt::format(
        "{}: x has to be (n, channels, spatial axes ...) and W have as many axes{}",
        described(s, x, W, b), axes < 1 ? "" : fmt::format(", {} of them spatial", axes)));
  }
  check_dtypes(name, x, W, b);
  s.stride = per_axis(name, "stride", o.stride, axes, 1);
  s.pad = per_axis(name, "pad", o.pad, axes, 0);
  s.dilate = per_axis(name, "dilate", o.dilate, axes, 1);
  if (o.groups < 1) throw ValueError(fmt::format("{}: groups {}; at least 1", name, o.groups));
  if (W.shape(0) % o.groups != 0 || x.shape(1) % o.groups != 0) {
    throw ShapeError(
        fmt::format("{}, groups {}: it has to divide the channels of x, {}, and W's "
                    "first axis, {}",
                    described(s, x, W, b), o.groups, x.shape(1), W.shape(0)));
  }
  for (int i = 0; i < axes; ++i) {
    if (W.shape(2 + i) < 1) {
      throw ShapeError(described(s, x, W, b) + ": the kernel has an extent of 0");
    }
  }
  return s;
}

void check_bias(const Settings& s, const Variable& x, const Variable& W, const Variable& b,
                std::int64_t filters) {
  if (!b.defined() || (b.ndim() == 1 && b.shape(0) == filters)) return;
  throw ShapeError(fmt::format("{}: b has to be ({},)", described(s, x, W, b), filters));
}

Variable apply(const Settings& s, ConvolutionDirection direction, const Variable& x,
               const Variable& W, const Variable& b, const Shape& result) {
  Variables inputs{x, W};
  if (b.defined()) inputs.push_back(b);
  return rensa::apply<Convolution>(inputs, s, direction, result)[0];
}

Variable convolution(const char* name, int axes, const Variables& given,
                     const ConvolutionOptions& o) {
  Variables inputs = autograd::autocast(name, given);
  const Variable &x = inputs[0], &W = inputs[1], &b = inputs[2];
  Settings s = settings_of(name, axes, x, W, b, o);
  if (W.shape(1) * s.groups != x.shape(1)) {
    throw ShapeError(
        fmt::format("{}, groups {}: W's second axis has to be x's {} channels over the "
                    "groups",
                    described(s, x, W, b), s.groups, x.shape(1)));
  }
  check_bias(s, x, W, b, W.shape(0));
  Shape y{x.shape(0), W.shape(0)}, behind = x.shape();
  bool wider = false;
  for (int i = 0; i < s.axes(); ++i) {
    std::int64_t extent = x.shape(2 + i) + 2 * s.pad[i], kernel = reach(s, W.shape(), i);
    if (kernel > extent) {
      throw ShapeError(
          fmt::format("{}, stride {}, pad {}, dilate {}: the kernel reaches over {} "
                      "elements of axis {}, which has {} with the padding",
                      described(s, x, W, b), s.stride.str(), s.pad.str(), s.dilate.str(), kernel,
                      2 + i, extent));
    }
    std::int64_t up = o.cover_all ? s.stride[i] - 1 : 0;
    y.push_back((extent - kernel + up) / s.stride[i] + 1);
    std::int64_t more = std::max<std::int64_t>((y[2 + i] - 1) * s.stride[i] + kernel - extent, 0);
    behind[2 + i] = more;
    wider = wider || more > 0;
  }
  if (!wider) return apply(s, ConvolutionDirection::forward, x, W, b, y);
  std::vector<std::pair<std::int64_t, std::int64_t>> widths(2, {0, 0});
  for (int i = 0; i < s.axes(); ++i) widths.emplace_back(0, behind[2 + i]);
  return apply(s, ConvolutionDirection::forward, pad(x, widths), W, b, y);
}

Variable deconvolution(const char* name, int axes, const Variables& given,
                       const DeconvolutionOptions& o) {
  Variables inputs = autograd::autocast(name, given);
  const Variable &x = inputs[0], &W = inputs[1], &b = inputs[2];
  Settings s = settings_of(name, axes, x, W, b, o);
  if (W.shape(0) != x.shape(1)) {
    throw ShapeError(fmt::format("{}: W's first axis has to be x's {} channels",
                                 described(s, x, W, b), x.shape(1)));
  }
  std::int64_t filters = W.shape(1) * s.groups;
  check_bias(s, x, W, b, filters);
  if (!o.outsize.empty() && o.outsize.size() != s.axes()) {
    throw ShapeError(fmt::format("{}, outsize {}: it has to have {} extents", described(s, x, W, b),
                                 o.outsize.str(), s.axes()));
  }
  // What is made is at least what all places of the kernel reach; outsize may end before that.
  Shape whole{x.shape(0), filters}, wanted = whole;
  for (int i = 0; i < s.axes(); ++i) {
    std::int64_t kernel = reach(s, W.shape(), i), stride = s.stride[i];
    std::int64_t least = stride * (x.shape(2 + i) - 1) + kernel - 2 * s.pad[i];
    std::int64_t out = o.outsize.empty() ? least : o.outsize[i];
    if (out < 1 || out <= least - stride || out >= least + stride) {
      throw ShapeError(fmt::format(
          "{}, stride {}, pad {}, dilate {}: an outsize of {} of axis {}; it has to be at least 1 "
          "and between {} and {}",
          described(s, x, W, b), s.stride.str(), s.pad.str(), s.dilate.str(), out, 2 + i,
          least - stride + 1, least + stride - 1));
    }
    whole.push_back(std::max(out, least));
    wanted.push_back(out);
  }
  Variable y = apply(s, ConvolutionDirection::input_gradient, x, W, b, whole);
  if (wanted == whole) return y;
  for (int i = 0; i < s.axes(); ++i) {
    if (wanted[2 + i] == whole[2 + i]) continue;
    std::vector<BasicIndex> index(static_cast<std::size_t>(2 + i), Slice());
    index.emplace_back(Slice(0, wanted[2 + i]));
    y = get_item(y, index);
  }
  return y;
}

}  // namespace

Array channels_last(const Array& x) {
  if (x.ndim() < 3) {
    throw ShapeError(fmt::format("channels_last: {} is not (n, channels, spatial axes ...)",
                                 x.view().describe()));
  }
  return in_layout(x, true);
}

Variable convolution_nd(const Variable& x, const Variable& W, const Variable& b,
                        const ConvolutionOptions& options) {
  return convolution("convolution_nd", 0, {x, W, b}, options);
}
Variable convolution_1d(const Variable& x, const Variable& W, const Variable& b,
                        const ConvolutionOptions& options) {
  return convolution("convolution_1d", 1, {x, W, b}, options);
}
Variable convolution_2d(const Variable& x, const Variable& W, const Variable& b,
                        const ConvolutionOptions& options) {
  return convolution("convolution_2d", 2, {x, W, b}, options);
}
Variable convolution_3d(const Variable& x, const Variable& W, const Variable& b,
                        const ConvolutionOptions& options) {
  return convolution("convolution_3d", 3, {x, W, b}, options);
}
Variable dilated_convolution_2d(const Variable& x, const Variable& W, const Variable& b,
                                const ConvolutionOptions& options) {
  return convolution("dilated_convolution_2d", 2, {x, W, b}, options);
}

Variable deconvolution_nd(const Variable& x, const Variable& W, const Variable& b,
                          const DeconvolutionOptions& options) {
  return deconvolution("deconvolution_nd", 0, {x, W, b}, options);
}
Variable deconvolution_1d(const Variable& x, const Variable& W, const Variable& b,
                          const DeconvolutionOptions& options) {
  return deconvolution("deconvolution_1d", 1, {x, W, b}, options);
}
Variable deconvolution_2d(const Variable& x, const Variable& W, const Variable& b,
                          const DeconvolutionOptions& options) {
  return deconvolution("deconvolution_2d", 2, {x, W, b}, options);
}
Variable deconvolution_3d(const Variable& x, const Variable& W, const Variable& b,
                          const DeconvolutionOptions& options) {
  return deconvolution("deconvolution_3d", 3, {x, W, b}, options);
}

Variable depthwise_convolution_2d(const Variable& x, const Variable& W, const Variable& b,
                                  const DepthwiseConvolutionOptions& options) {
  const char* name = "depthwise_convolution_2d";
  if (x.ndim() != 4 || W.ndim() != 4 || W.shape(1) != x.shape(1)) {
    throw ShapeError(fmt::format(
        "{}: x {} and W {}: x has to be (n, channels, height, width), W (multiplier, channels, kh, "
        "kw)",
        name, x.array().view().describe(), W.array().view().describe()));
  }
  Variable filters =
      reshape(transpose(W, {1, 0, 2, 3}), {W.shape(0) * W.shape(1), 1, W.shape(2), W.shape(3)});
  return convolution(name, 2, {x, filters, b},
                     {.stride = options.stride, .pad = options.pad, .groups = W.shape(1)});
}

Variable local_convolution_2d(const Variable& x_given, const Variable& W_given,
                              const Variable& b_given, const LocalConvolutionOptions& options) {
  const char* name = "local_convolution_2d";
  Variables inputs = autograd::autocast(name, {x_given, W_given, b_given});
  const Variable &x = inputs[0], &W = inputs[1], &b = inputs[2];
  Shape stride = per_axis(name, "stride", options.stride, 2, 1);
  bool fits = x.ndim() == 4 && W.ndim() == 6 && W.shape(3) == x.shape(1);
  for (int i = 0; fits && i < 2; ++i) {
    fits = W.shape(1 + i) >= 1 && W.shape(4 + i) >= 1 &&
           (W.shape(1 + i) - 1) * stride[i] + W.shape(4 + i) <= x.shape(2 + i);
  }
  if (fits && b.defined()) fits = b.shape() == Shape({W.shape(0), W.shape(1), W.shape(2)});
  if (!fits) {
    throw ShapeError(
        fmt::format("{}, stride {}: x has to be (n, channels, height, width), W (filters, out_h, "
                    "out_w, channels, kh, kw) with (out - 1) * stride + k no larger than the "
                    "image, and b (filters, out_h, out_w)",
                    described(name, x, W, b), stride.str()));
  }
  check_dtypes(name, x, W, b);
  std::int64_t n = x.shape(0), filters = W.shape(0), rows = W.shape(1), columns = W.shape(2);
  std::int64_t depth = W.shape(3) * W.shape(4) * W.shape(5);
  // At each place the windows (n, depth) times its filters (depth, filters).
  Variable used = get_item(x, {Slice(), Slice(), Slice(0, (rows - 1) * stride[0] + W.shape(4)),
                               Slice(0, (columns - 1) * stride[1] + W.shape(5))});
  Variable windows = im2col(used, {W.shape(4), W.shape(5)}, {.stride = stride});
  windows = reshape(transpose(windows, {2, 3, 0, 1}), {rows * columns, n, depth});
  Variable places = reshape(transpose(W, {1, 2, 3, 4, 5, 0}), {rows * columns, depth, filters});
  Variable y =
      transpose(reshape(matmul(windows, places), {rows, columns, n, filters}), {2, 3, 0, 1});
  return b.defined() ? y + b : y;
}

}  // namespace rensa::functions

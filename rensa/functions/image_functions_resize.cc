// Images resized: the nodes, whose backward are each other.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "rensa/array/math.h"
#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/image_functions.h"
#include "rensa/functions/math_functions.h"
#include "rensa/functions/operations/resize/resize.h"

namespace rensa::functions {

namespace {

constexpr const char* kName = "resize_images";

/// The axis that makes `out` pixels of `in` elements.
ResizeAxis axis_of(std::int64_t in, std::int64_t out, const ResizeImagesOptions& options) {
  ResizeAxis a;
  a.in = static_cast<int>(in);
  a.out = static_cast<int>(out);
  a.linear = options.mode != "nearest";
  a.scale = static_cast<double>(in) / static_cast<double>(out);
  if (a.linear && options.align_corners) {
    a.scale = static_cast<double>(in - 1) / static_cast<double>(std::max<std::int64_t>(out - 1, 1));
  } else if (a.linear) {
    a.shift = 0.5;
  }
  a.inverse = a.scale > 0 ? 1 / a.scale : 0;
  return a;
}

/// What both directions work with.
struct Resizing {
  ResizeAxis rows, columns;
  bool channels_last = false;  // in memory

  operations::ResizeShape operation(const Shape& x) const {
    if (channels_last) return {x[0], x[1], rows, columns};
    return {x[0] * x[1], 1, rows, columns};
  }
  /// Dense, in the order of memory: x itself where it is that.
  Array folded(const Array& x) const {
    return channels_last ? x.transpose({0, 2, 3, 1}).ascontiguous() : x.ascontiguous();
  }
  /// A dense array for what is made of `like`, folded.
  Array new_folded(const Array& like, std::int64_t height, std::int64_t width) const {
    std::int64_t n = like.shape(0), channels = like.shape(1);
    Shape shape{n, channels, height, width};
    if (channels_last) shape = {n, height, width, channels};
    return xp::empty(shape, like.dtype(), like.device());
  }
  Array unfolded(const Array& x) const { return channels_last ? x.transpose({0, 3, 1, 2}) : x; }
};

class ResizeNode final : public FunctionNode {
 public:
  explicit ResizeNode(const Resizing& r) : FunctionNode(kName), r_(r) {}
  Arrays forward(const Arrays& inputs) override {
    Array x = r_.folded(inputs[0]), y = r_.new_folded(inputs[0], r_.rows.out, r_.columns.out);
    operations::Resize op(name());
    op.shape = r_.operation(inputs[0].shape());
    op.x = x.operand();
    op.y = y.operand();
    if (y.size() > 0) launch(op);
    return {r_.unfolded(y)};
  }
  Variables backward(const Indexes&, const Variables& gy) override;

 private:
  Resizing r_;
};

class ResizeSpreadNode final : public FunctionNode {
 public:
  explicit ResizeSpreadNode(const Resizing& r) : FunctionNode(kName), r_(r) {}
  Arrays forward(const Arrays& inputs) override {
    Array gy = r_.folded(inputs[0]), gx = r_.new_folded(inputs[0], r_.rows.in, r_.columns.in);
    operations::ResizeSpread op(name());
    op.shape = r_.operation(inputs[0].shape());
    op.gy = gy.operand();
    op.gx = gx.operand();
    if (gx.size() > 0) launch(op);
    return {r_.unfolded(gx)};
  }
  Variables backward(const Indexes&, const Variables& ggx) override {
    return rensa::apply<ResizeNode>({ggx[0]}, r_);
  }

 private:
  Resizing r_;
};

Variables ResizeNode::backward(const Indexes&, const Variables& gy) {
  return rensa::apply<ResizeSpreadNode>({gy[0]}, r_);
}

/// One axis resized by indexing, for the dtypes that the operation has not: integers and complex.
Variable resized(const Variable& x, int axis, const ResizeAxis& a) {
  Array place = (xp::arange(a.out, float64, x.device()) + a.shift) * a.scale - a.shift;
  Array below =
      xp::minimum(floor(constant(xp::maximum(place, 0.0))).array(), static_cast<double>(a.in - 1));
  Array index = below.astype(int64);
  Variable y = index_select(x, axis, index);
  if (!a.linear) return y;
  Shape beside = Shape::filled(4, 1);
  beside[axis] = a.out;
  Array share = xp::maximum(place, 0.0) - below;
  Variable next = constant(share.astype(x.dtype()).reshape(beside));
  return y * (1 - next) + index_select(x, axis, xp::minimum(index + 1, a.in - 1)) * next;
}

}  // namespace

Variable resize_images(const Variable& x, const Shape& output_shape,
                       const ResizeImagesOptions& options) {
  std::string text =
      fmt::format("{}: x {} to {}", kName, x.array().view().describe(), output_shape.str());
  if (x.ndim() != 4) {
    throw ShapeError(text + ": x is no batch of images (n, channels, height, width)");
  }
  Shape out = output_shape;
  if (out.ndim() == 1) out = {out[0], out[0]};
  if (out.ndim() != 2) throw ShapeError(text + ": that is neither one number nor two");
  if (options.mode != "bilinear" && options.mode != "nearest") {
    throw ValueError(
        fmt::format("{}: mode \"{}\"; there are bilinear and nearest", kName, options.mode));
  }
  for (std::int64_t n : {out[0], out[1], x.shape(2), x.shape(3)}) {
    if (n < 1) throw ShapeError(text + ": no extent may be 0");
    if (n > std::numeric_limits<int>::max() / 2) {
      throw NotImplementedError(text + ": that is too large");
    }
  }
  Resizing r{axis_of(x.shape(2), out[0], options), axis_of(x.shape(3), out[1], options)};
  if (dtype_kind(x.dtype()) != 'f') return resized(resized(x, 2, r.rows), 3, r.columns);
  const Array& array = x.array();
  r.channels_last = !array.is_contiguous() && array.transpose({0, 2, 3, 1}).is_contiguous();
  return rensa::apply<ResizeNode>({x}, r)[0];
}

}  // namespace rensa::functions

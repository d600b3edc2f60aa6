// Functions of images: forward and backward.
#include "rensa/functions/image_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "rensa/array/math.h"
#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"
#include "rensa/functions/array_functions.h"

namespace rensa::functions {

namespace {

void check_images(const char* function, const Variable& x) {
  if (x.ndim() == 4) return;
  throw ShapeError(fmt::format("{}: {} is no batch of images (n, channels, height, width)",
                               function, x.array().view().describe()));
}

/// {height, width} of one number or both.
Shape both(const char* function, const char* what, const Shape& given) {
  if (given.ndim() == 1) return {given[0], given[0]};
  if (given.ndim() == 2) return given;
  throw ShapeError(fmt::format("{}: {} {} is neither one number nor a height and a width", function,
                               what, given.str()));
}

/// The windows of a kernel over the last two axes: (n, c, kh, kw, out_h, out_w).
struct Windows {
  Shape ksize, stride, dilate, out;
  Array of(const Array& x) const {
    const Shape &shape = x.shape(), &strides = x.strides();
    return Array(x, x.view().data, {shape[0], shape[1], ksize[0], ksize[1], out[0], out[1]},
                 {strides[0], strides[1], strides[2] * dilate[0], strides[3] * dilate[1],
                  strides[2] * stride[0], strides[3] * stride[1]});
  }
};

class Im2col final : public FunctionNode {
 public:
  explicit Im2col(const Windows& windows) : FunctionNode("im2col"), windows_(windows) {}
  Arrays forward(const Arrays& x) override { return {windows_.of(x[0]).copy()}; }
  Variables backward(const Indexes&, const Variables& gy) override;

 private:
  Windows windows_;
};

/// The gradient of Im2col: each pixel has the sum of those of the windows that it stands in.
class Col2im final : public FunctionNode {
 public:
  Col2im(const Windows& windows, const Shape& shape)
      : FunctionNode("col2im"), windows_(windows), shape_(shape) {}
  Arrays forward(const Arrays& gy) override {
    Array gx = xp::zeros(shape_, gy[0].dtype(), gy[0].device()), windows = windows_.of(gx);
    for (std::int64_t i = 0; i < windows_.ksize[0]; ++i) {
      for (std::int64_t j = 0; j < windows_.ksize[1]; ++j) {
        windows[{Slice(), Slice(), i, j}] += gy[0][{Slice(), Slice(), i, j}];
      }
    }
    return {gx};
  }
  Variables backward(const Indexes&, const Variables& ggx) override {
    return rensa::apply<Im2col>(ggx, windows_);
  }

 private:
  Windows windows_;
  Shape shape_;
};

Variables Im2col::backward(const Indexes&, const Variables& gy) {
  return rensa::apply<Col2im>(gy, windows_, inputs()[0]->shape);
}

}  // namespace

Variable depth2space(const Variable& x, std::int64_t r) {
  check_images("depth2space", x);
  if (r < 1 || x.shape(1) % (r * r) != 0) {
    throw ShapeError(fmt::format("depth2space: r = {} for {}: r * r has to divide the channels", r,
                                 x.array().view().describe()));
  }
  std::int64_t n = x.shape(0), c = x.shape(1) / (r * r), h = x.shape(2), w = x.shape(3);
  Variable blocks = transpose(reshape(x, {n, r, r, c, h, w}), {0, 3, 4, 1, 5, 2});
  return reshape(blocks, {n, c, h * r, w * r});
}

Variable space2depth(const Variable& x, std::int64_t r) {
  check_images("space2depth", x);
  if (r < 1 || x.shape(2) % r != 0 || x.shape(3) % r != 0) {
    throw ShapeError(fmt::format("space2depth: r = {} for {}: r has to divide height and width", r,
                                 x.array().view().describe()));
  }
  std::int64_t n = x.shape(0), c = x.shape(1), h = x.shape(2) / r, w = x.shape(3) / r;
  Variable blocks = transpose(reshape(x, {n, c, h, r, w, r}), {0, 3, 5, 1, 2, 4});
  return reshape(blocks, {n, c * r * r, h, w});
}

Variable im2col(const Variable& x, const Shape& ksize, const Im2colOptions& options) {
  check_images("im2col", x);
  Windows windows{both("im2col", "ksize", ksize),
                  both("im2col", "stride", options.stride),
                  both("im2col", "dilate", options.dilate),
                  {0, 0}};
  Shape pad_width = both("im2col", "pad", options.pad), behind = pad_width;
  for (int i = 0; i < 2; ++i) {
    std::int64_t reach = (windows.ksize[i] - 1) * windows.dilate[i] + 1, stride = windows.stride[i];
    std::int64_t extent = x.shape(2 + i) + 2 * pad_width[i];
    if (windows.ksize[i] < 1 || stride < 1 || windows.dilate[i] < 1 || reach > extent) {
      throw ShapeError(fmt::format(
          "im2col: windows {} with stride {}, dilate {} and pad {} of {}: they are at least 1 and "
          "no larger than the padded image",
          windows.ksize.str(), windows.stride.str(), windows.dilate.str(), pad_width.str(),
          x.array().view().describe()));
    }
    windows.out[i] = (extent - reach + (options.cover_all ? stride - 1 : 0)) / stride + 1;
    std::int64_t needed = (windows.out[i] - 1) * stride + reach;
    behind[i] += std::max<std::int64_t>(needed - extent, 0);
  }
  Variable padded = pad(x, {{0, 0}, {0, 0}, {pad_width[0], behind[0]}, {pad_width[1], behind[1]}});
  Variable y = apply<Im2col>({padded}, windows)[0];
  std::int64_t columns = x.shape(1) * windows.ksize[0] * windows.ksize[1];
  return reshape(y, {x.shape(0), columns, windows.out[0], windows.out[1]});
}

Variable shift(const Variable& x, const Shape& ksize, const ShiftOptions& options) {
  constexpr const char* name = "shift";
  auto pair = [&](const char* what, const Shape& given) {
    Shape two = given.size() == 1 ? Shape{given[0], given[0]} : given;
    if (two.size() == 2) return two;
    throw ValueError(
        fmt::format("{}: {} {} is neither one number nor two", name, what, given.str()));
  };
  Shape kernel = pair("ksize", ksize), dilate = pair("dilate", options.dilate);
  for (int i = 0; i < 2; ++i) {
    if (kernel[i] < 1 || kernel[i] % 2 == 0 || dilate[i] == 0) {
      throw ValueError(fmt::format("{}: ksize {}, which is to be odd, and dilate {}, not 0", name,
                                   kernel.str(), dilate.str()));
    }
  }
  check_images(name, x);
  std::int64_t groups = kernel[0] * kernel[1], channels = x.shape(1), middle = groups / 2;
  if (channels < groups) {
    throw ShapeError(fmt::format("{}: x {} has fewer channels than a kernel {} places", name,
                                 x.array().view().describe(), kernel.str()));
  }
  std::int64_t around[2];
  for (int i = 0; i < 2; ++i) around[i] = kernel[i] / 2 * std::abs(dilate[i]);
  Variable padded = pad(x, {{0, 0}, {0, 0}, {around[0], around[0]}, {around[1], around[1]}});
  Variables parts;
  for (std::int64_t g = 0; g < groups; ++g) {
    // The middle one comes last, in whose place the last one stands.
    std::int64_t place = g == middle ? groups - 1 : g == groups - 1 ? middle : g;
    std::int64_t top = around[0] - (place / kernel[1] - kernel[0] / 2) * dilate[0];
    std::int64_t left = around[1] - (place % kernel[1] - kernel[1] / 2) * dilate[1];
    std::int64_t begin = g * (channels / groups);
    std::int64_t end = g == groups - 1 ? channels : begin + channels / groups;
    parts.push_back(get_item(padded, {Slice(), Slice(begin, end), Slice(top, top + x.shape(2)),
                                      Slice(left, left + x.shape(3))}));
  }
  return concat(parts, 1);
}

}  // namespace rensa::functions

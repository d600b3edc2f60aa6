// Convolution at places that are learned: images are sampled there, and a product is taken.
#include "rensa/functions/deformable_convolution.h"

#include <fmt/format.h>

#include <algorithm>

#include "rensa/array/creation.h"
#include "rensa/autograd/autocast.h"
#include "rensa/core/error.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/image_functions.h"
#include "rensa/functions/joining_functions.h"
#include "rensa/functions/math_functions.h"

namespace rensa::functions {

namespace {

constexpr const char* kName = "deformable_convolution_2d_sampler";

Shape pair_of(const char* what, const Shape& given, std::int64_t least) {
  Shape pair = given.size() == 1 ? Shape{given[0], given[0]} : given;
  bool fits = pair.size() == 2;
  for (std::int64_t v : pair) fits = fits && v >= least;
  if (fits) return pair;
  throw ValueError(fmt::format("{}: {} {} is neither one number nor two of at least {}", kName,
                               what, given.str(), least));
}

void check(const Variable& x, const Variable& offset, const Variable& W, const Variable& b,
           const Shape& stride, const Shape& pad) {
  std::string text = fmt::format("{}: x {}, offset {}, W {}", kName, x.array().view().describe(),
                                 offset.array().view().describe(), W.array().view().describe());
  if (b.defined()) text += fmt::format(", b {}", b.array().view().describe());
  bool fits = x.ndim() == 4 && W.ndim() == 4 && offset.ndim() == 4 && W.shape(1) == x.shape(1) &&
              (!b.defined() || b.shape() == Shape{W.shape(0)});
  if (fits) {
    fits = offset.shape(0) == x.shape(0) && offset.shape(1) == 2 * W.shape(2) * W.shape(3) &&
           W.shape(2) >= 1 && W.shape(3) >= 1;
    for (int i = 0; fits && i < 2; ++i) {
      std::int64_t room = x.shape(2 + i) + 2 * pad[i] - W.shape(2 + i);
      fits = room >= 0 && offset.shape(2 + i) == room / stride[i] + 1;
    }
  }
  if (!fits) {
    throw ShapeError(fmt::format(
        "{}, stride {}, pad {}: x must be (n, channels, height, width), W (filters, channels, kh, "
        "kw), b (filters,) and offset (n, 2 * kh * kw, out_h, out_w), where out is (extent + 2 * "
        "pad - k) / stride + 1",
        text, stride.str(), pad.str()));
  }
  bool types = dtype_kind(x.dtype()) == 'f' && offset.dtype() == x.dtype() &&
               W.dtype() == x.dtype() && (!b.defined() || b.dtype() == x.dtype());
  if (!types) {
    throw DtypeError(text + ": all must be of one floating dtype; use F::cast or astype");
  }
  for (const Variable* other : {&offset, &W, &b}) {
    if (other->defined()) check_same_device(kName, x.array(), other->array());
  }
}

/// `offset` along one axis, (n, kh * kw, out_h, out_w), as places of the padded x between -1 and 1.
Variable places(const Variable& offset, int axis, const Shape& kernel, std::int64_t stride,
                std::int64_t extent) {
  Dtype dtype = offset.dtype();
  Device device = offset.device();
  Shape in_kernel{1, axis == 0 ? kernel[0] : 1, axis == 0 ? 1 : kernel[1], 1, 1};
  Shape out{1, 1, 1, axis == 0 ? offset.shape(2) : 1, axis == 0 ? 1 : offset.shape(3)};
  Array first = xp::arange(kernel[axis], dtype, device).reshape(in_kernel);
  Array window = xp::arange(offset.shape(2 + axis), dtype, device).reshape(out) * stride;
  std::int64_t n = offset.shape(0), h = offset.shape(2), w = offset.shape(3);
  Variable shifted = reshape(offset, {n, kernel[0], kernel[1], h, w}) + constant(first + window);
  auto last = static_cast<double>(extent - 1);
  return reshape((shifted / last - 0.5) * 2, {n, 1, kernel[0] * kernel[1], h * w});
}

}  // namespace

Variable deformable_convolution_2d_sampler(const Variable& x_given, const Variable& offset_given,
                                           const Variable& W_given, const Variable& b_given,
                                           const DeformableConvolutionOptions& options) {
  Variables inputs = autograd::autocast(kName, {x_given, offset_given, W_given, b_given});
  const Variable &x = inputs[0], &offset = inputs[1], &W = inputs[2], &b = inputs[3];
  Autocast off(none);
  Shape stride = pair_of("stride", options.stride, 1), around = pair_of("pad", options.pad, 0);
  check(x, offset, W, b, stride, around);
  std::int64_t n = x.shape(0), channels = x.shape(1), filters = W.shape(0);
  std::int64_t rows = offset.shape(2), columns = offset.shape(3);
  Shape kernel{W.shape(2), W.shape(3)};
  std::int64_t taps = kernel[0] * kernel[1];
  // Between -1 and 1 an axis of one element has one place alone: a further element of padding.
  auto behind = [&](int axis) {
    return around[axis] + (x.shape(2 + axis) + 2 * around[axis] == 1 ? 1 : 0);
  };
  // Half types do not tell the places of a large picture apart.
  Dtype wide = promote_types(x.dtype(), float32);
  Variable padded =
      cast(pad(x, {{0, 0}, {0, 0}, {around[0], behind(0)}, {around[1], behind(1)}}), wide);
  Variable offsets = cast(offset, wide);
  auto part = [&](int i) { return get_item(offsets, {Slice(), Slice(i * taps, (i + 1) * taps)}); };
  Variable to_the_right = places(part(0), 1, kernel, stride[1], padded.shape(3));
  Variable below = places(part(1), 0, kernel, stride[0], padded.shape(2));
  Variable sampled =
      cast(spatial_transformer_sampler(padded, concat({to_the_right, below}, 1)), x.dtype());
  // (n, channels, taps, places): the rows of a product with the filters.
  sampled = reshape(transpose(sampled, {0, 3, 1, 2}), {n * rows * columns, channels * taps});
  Variable y = matmul(sampled, reshape(W, {filters, channels * taps}), false, true);
  y = transpose(reshape(y, {n, rows, columns, filters}), {0, 3, 1, 2});
  return b.defined() ? y + reshape(b, {1, filters, 1, 1}) : y;
}

}  // namespace rensa::functions

// Functions of images (n, channels, height, width), with gradients of any order. Throw ShapeError
// for other than 4 axes.
#pragma once

#include <string_view>

#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

struct ResizeImagesOptions {
  rensa::detail::NamedOptions named = {};
  std::string_view mode = "bilinear";  // or "nearest"
  bool align_corners = true;           // the outermost pixels stay where they are
};
/// Images of `output_shape`, {height, width}, of which each pixel lies between four of x (bilinear)
/// or is one of them (nearest). Channels-last images stay so in memory. The shares of pixels of 16
/// bits are float32. Throws ValueError for another mode, ShapeError for an extent of 0.
[[nodiscard]] Variable resize_images(const Variable& x, const Shape& output_shape,
                                     const ResizeImagesOptions& options = {});

/// The places that affine maps theta (n, 2, 3) send the pixels of an image of `output_shape` to:
/// (n, 2, height, width), x and y, -1 and 1 being the outermost pixels.
[[nodiscard]] Variable spatial_transformer_grid(const Variable& theta, const Shape& output_shape);
/// The pixels of x at the places of `grid` (n, 2, height, width), each between four of x; zeros
/// outside. x and grid of different dtypes take the wider one; places and shares of 16 bits are
/// float32. Gradients are the same bits each time. Throws ShapeError where the grid does not fit.
[[nodiscard]] Variable spatial_transformer_sampler(const Variable& x, const Variable& grid);

/// (n, r * r * c, h, w) as (n, c, r * h, r * w), and back: blocks of r * r pixels as channels.
/// Throw ShapeError where r does not divide.
[[nodiscard]] Variable depth2space(const Variable& x, std::int64_t r);
[[nodiscard]] Variable space2depth(const Variable& x, std::int64_t r);

struct Im2colOptions {
  rensa::detail::NamedOptions named = {};
  Shape stride = 1, pad = 0;  // one number, or {height, width}
  bool cover_all = false;     // a last window that reaches beyond the border
  Shape dilate = 1;           // the distance of a window's pixels
};
/// The windows of `ksize` of the padded x as columns, (n, channels * kh * kw, out_h, out_w). Throws
/// ShapeError for a window larger than the padded image.
[[nodiscard]] Variable im2col(const Variable& x, const Shape& ksize,
                              const Im2colOptions& options = {});

struct ShiftOptions {
  rensa::detail::NamedOptions named = {};
  Shape dilate = 1;  // one number, or {height, width}; not 0
};
/// Wu et al., "Shift: a zero FLOP, zero parameter alternative to spatial convolutions": of x (n,
/// channels, height, width) as many groups of channels as a kernel has places, each moved towards
/// its place, with zeros behind. The last group, which has the rest of the channels too, stays.
/// ksize is one odd number, or {height, width}. Throws ShapeError where there are fewer channels
/// than places, ValueError, DtypeError.
[[nodiscard]] Variable shift(const Variable& x, const Shape& ksize = 3,
                             const ShiftOptions& options = {});

}  // namespace functions

namespace F = functions;

}  // namespace rensa

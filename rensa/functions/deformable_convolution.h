// Convolution at places that are learned.
#pragma once

#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

struct DeformableConvolutionOptions {
  rensa::detail::NamedOptions named = {};
  Shape stride = 1, pad = 0;  // one number, or {height, width}
};

/// Dai et al., "Deformable convolutional networks": a convolution of x (n, channels, height, width)
/// with W (filters, channels, kh, kw), plus b (filters,), which may be undefined, that finds each
/// of its elements further off, by offset (n, 2 * kh * kw, out_h, out_w): for each of the kernel's
/// places first how far to the right, then, behind all of these, how far below. Between elements it
/// is linear, outside of x with its padding 0. Gradients of x, offset, W and b.
///
/// Throws ShapeError, DtypeError, DeviceError; ValueError for a stride below 1 and a negative pad.
[[nodiscard]] Variable deformable_convolution_2d_sampler(
    const Variable& x, const Variable& offset, const Variable& W, const Variable& b = {},
    const DeformableConvolutionOptions& options = {});

}  // namespace functions

namespace F = functions;

}  // namespace rensa

// Convolutions, with gradients of any order.
//
// x is (n, channels, spatial axes ...), as C-contiguous memory or with the channels last (a
// transposed view): results lie in memory as x or W does. All operands are of one floating dtype;
// half types are summed in float32. On a GPU cuDNN computes, of 1 to 3 spatial axes, and float32
// keeps its digits unless config().tf32 is set. Nothing waits but what config().autotune times.
//
// Throw ShapeError, with the operands and the rule, where these do not fit; ValueError for
// a stride, a dilation or groups below 1 and a negative pad; DtypeError for several dtypes; and on
// a GPU CudaError where cuDNN is missing, NotImplementedError where it cannot do what is asked.
#pragma once

#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

/// x (n, channels, ...), or a copy that lies with the channels (axis 1) last in memory; the shape
/// is as before. How convolutions run fastest on a GPU: give it each batch, and models to
/// links::channels_last.
[[nodiscard]] Array channels_last(const Array& x);

struct ConvolutionOptions {
  rensa::detail::NamedOptions named = {};
  Shape stride = 1, pad = 0;  // one number, or one for each spatial axis
  bool cover_all = false;     // a last place of the kernel that reaches beyond the padding
  Shape dilate = 1;           // the distance of a kernel's elements
  std::int64_t groups = 1;    // of channels and filters, the first ones with the first ones
};

/// The correlation of x with each filter of W (filters, channels / groups, ...), plus b (filters,)
/// where it is defined: y is (n, filters, ...) with, along each spatial axis,
///   (extent + 2 * pad - (kernel - 1) * dilate - 1) / stride + 1
/// elements, rounded down, or up for `cover_all`.
[[nodiscard]] Variable convolution_nd(const Variable& x, const Variable& W, const Variable& b = {},
                                      const ConvolutionOptions& options = {});
/// Of one, two and three spatial axes.
[[nodiscard]] Variable convolution_1d(const Variable& x, const Variable& W, const Variable& b = {},
                                      const ConvolutionOptions& options = {});
[[nodiscard]] Variable convolution_2d(const Variable& x, const Variable& W, const Variable& b = {},
                                      const ConvolutionOptions& options = {});
[[nodiscard]] Variable convolution_3d(const Variable& x, const Variable& W, const Variable& b = {},
                                      const ConvolutionOptions& options = {});
/// convolution_2d, whose `dilate` it was before that had one.
[[nodiscard]] Variable dilated_convolution_2d(const Variable& x, const Variable& W,
                                              const Variable& b = {},
                                              const ConvolutionOptions& options = {});

struct DeconvolutionOptions {
  rensa::detail::NamedOptions named = {};
  Shape stride = 1, pad = 0;  // one number, or one for each spatial axis
  Shape outsize = {};         // the spatial extents of y, where several are possible
  Shape dilate = 1;
  std::int64_t groups = 1;
};

/// The transposed convolution: what convolution_nd of the same options does to gradients. W is
/// (channels, filters / groups, ...), b (filters,), and y (n, filters, ...) with
///   stride * (extent - 1) + (kernel - 1) * dilate + 1 - 2 * pad
/// elements along each axis, or `outsize`, of which a convolution has to give x's extents (with or
/// without cover_all).
[[nodiscard]] Variable deconvolution_nd(const Variable& x, const Variable& W,
                                        const Variable& b = {},
                                        const DeconvolutionOptions& options = {});
/// Of one, two and three spatial axes.
[[nodiscard]] Variable deconvolution_1d(const Variable& x, const Variable& W,
                                        const Variable& b = {},
                                        const DeconvolutionOptions& options = {});
[[nodiscard]] Variable deconvolution_2d(const Variable& x, const Variable& W,
                                        const Variable& b = {},
                                        const DeconvolutionOptions& options = {});
[[nodiscard]] Variable deconvolution_3d(const Variable& x, const Variable& W,
                                        const Variable& b = {},
                                        const DeconvolutionOptions& options = {});

struct DepthwiseConvolutionOptions {
  rensa::detail::NamedOptions named = {};
  Shape stride = 1, pad = 0;  // one number, or {height, width}
};
/// Each channel of x (n, channels, height, width) with `multiplier` filters of its own: W is
/// (multiplier, channels, kh, kw), b and the channels of y are channels * multiplier, those of the
/// first channel first.
[[nodiscard]] Variable depthwise_convolution_2d(const Variable& x, const Variable& W,
                                                const Variable& b = {},
                                                const DepthwiseConvolutionOptions& options = {});

struct LocalConvolutionOptions {
  rensa::detail::NamedOptions named = {};
  Shape stride = 1;  // one number, or {height, width}
};
/// A convolution with other filters at each place: x is (n, channels, height, width), W (filters,
/// out_h, out_w, channels, kh, kw), b (filters, out_h, out_w) or undefined, y (n, filters, out_h,
/// out_w).
[[nodiscard]] Variable local_convolution_2d(const Variable& x, const Variable& W,
                                            const Variable& b = {},
                                            const LocalConvolutionOptions& options = {});

}  // namespace functions

namespace F = functions;

}  // namespace rensa

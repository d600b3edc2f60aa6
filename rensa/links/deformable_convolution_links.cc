// L::DeformableConvolution2D.
#include "rensa/links/deformable_convolution_links.h"

#include <fmt/format.h>

#include "rensa/core/error.h"
#include "rensa/functions/deformable_convolution.h"

namespace rensa::links {

namespace {

Shape kernel_of(const Shape& ksize) {
  Shape kernel = ksize.size() == 1 ? Shape{ksize[0], ksize[0]} : ksize;
  if (kernel.size() == 2 && kernel[0] >= 1 && kernel[1] >= 1) return kernel;
  throw ValueError(fmt::format("DeformableConvolution2D: a ksize of {}", ksize.str()));
}

using Options = DeformableConvolutionLinkOptions;

ConvolutionLinkOptions of_offset(const Options& o) {
  return {.stride = o.stride,
          .pad = o.pad,
          .nobias = o.offset_nobias,
          .initialW = o.offset_initialW,
          .initial_bias = o.offset_initial_bias};
}

DeformableSamplerOptions of_sampler(const Options& o) {
  return {.stride = o.stride,
          .pad = o.pad,
          .nobias = o.deform_nobias,
          .initialW = o.deform_initialW,
          .initial_bias = o.deform_initial_bias};
}

std::int64_t offsets(const Shape& ksize) {
  Shape kernel = kernel_of(ksize);
  return 2 * kernel[0] * kernel[1];
}

}  // namespace

DeformableConvolution2DSampler::DeformableConvolution2DSampler(None, std::int64_t out,
                                                               const Shape& ksize, const Options& o)
    : W(o.initialW ? o.initialW : Initializer(0)),
      out_(out),
      ksize_(kernel_of(ksize)),
      stride_(o.stride),
      pad_(o.pad) {
  if (out < 0) throw ValueError(fmt::format("DeformableConvolution2D: {} channels", out));
  W.body()->name = "W";
  if (o.nobias) return;
  b = rensa::Parameter(o.initial_bias ? o.initial_bias : Initializer(0), {out});
  b.body()->name = "b";
}

DeformableConvolution2DSampler::DeformableConvolution2DSampler(std::int64_t in, std::int64_t out,
                                                               const Shape& ksize, const Options& o)
    : DeformableConvolution2DSampler(none, out, ksize, o) {
  if (in < 0) throw ValueError(fmt::format("DeformableConvolution2D: {} input channels", in));
  W.initialize({out, in, ksize_[0], ksize_[1]});
}

Variable DeformableConvolution2DSampler::operator()(const Variable& x,
                                                    const Variable& offset) const {
  if (!W.is_initialized() && x.ndim() == 4) {
    W.initialize({out_, x.shape(1), ksize_[0], ksize_[1]});
  }
  return F::deformable_convolution_2d_sampler(x, offset, W, b, {.stride = stride_, .pad = pad_});
}

DeformableConvolution2D::DeformableConvolution2D(None, std::int64_t out, const Shape& ksize,
                                                 const Options& o)
    : offset_conv(none, offsets(ksize), ksize, of_offset(o)),
      deform_conv(none, out, ksize, of_sampler(o)) {}

DeformableConvolution2D::DeformableConvolution2D(std::int64_t in, std::int64_t out,
                                                 const Shape& ksize, const Options& o)
    : offset_conv(in, offsets(ksize), ksize, of_offset(o)),
      deform_conv(in, out, ksize, of_sampler(o)) {}

}  // namespace rensa::links

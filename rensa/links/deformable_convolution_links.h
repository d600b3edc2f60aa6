// L::DeformableConvolution2D: a convolution at places that another one says.
#pragma once

#include <cstdint>

#include "rensa/links/convolution_links.h"

namespace rensa {
namespace links {

/// The options of DeformableConvolution2DSampler.
struct DeformableSamplerOptions {
  rensa::detail::NamedOptions named = {};
  Shape stride = 1, pad = 0;      // one number, or {height, width}
  bool nobias = false;            // no b
  Initializer initialW = {};      // 0 when left out
  Initializer initial_bias = {};  // 0 when left out
};

/// F::deformable_convolution_2d_sampler: W is (out, in, kh, kw), b (out,). `in` may be `none`.
class DeformableConvolution2DSampler : public Chain<DeformableConvolution2DSampler> {
 public:
  using Options = DeformableSamplerOptions;  // what constructors take
  DeformableConvolution2DSampler(None, std::int64_t out, const Shape& ksize,
                                 const Options& options = {});
  DeformableConvolution2DSampler(std::int64_t in, std::int64_t out, const Shape& ksize,
                                 const Options& options = {});
  void members(Visitor& v) override { v("W", W), v("b", b); }

  Variable operator()(const Variable& x, const Variable& offset) const;

  rensa::Parameter W, b;

 private:
  std::int64_t out_;
  Shape ksize_, stride_, pad_;
};

/// The options of DeformableConvolution2D.
struct DeformableConvolutionLinkOptions {
  rensa::detail::NamedOptions named = {};
  Shape stride = 1, pad = 0;             // one number, or {height, width}
  bool offset_nobias = false;            // no b of offset_conv
  Initializer offset_initialW = {};      // LeCunNormal when left out
  Initializer offset_initial_bias = {};  // 0 when left out
  bool deform_nobias = false;            // no b of deform_conv
  Initializer deform_initialW = {};      // 0 when left out
  Initializer deform_initial_bias = {};  // 0 when left out
};

/// Where the sampler looks, a convolution says, offset_conv, of the same ksize, stride and pad.
/// `in` may be `none`.
class DeformableConvolution2D : public Chain<DeformableConvolution2D> {
 public:
  using Options = DeformableConvolutionLinkOptions;  // what constructors take
  DeformableConvolution2D(None, std::int64_t out, const Shape& ksize, const Options& options = {});
  DeformableConvolution2D(std::int64_t in, std::int64_t out, const Shape& ksize,
                          const Options& options = {});
  void members(Visitor& v) override {
    v("offset_conv", offset_conv), v("deform_conv", deform_conv);
  }

  Variable operator()(const Variable& x) const { return deform_conv(x, offset_conv(x)); }

  Convolution2D offset_conv;
  DeformableConvolution2DSampler deform_conv;  // the sampler
};

}  // namespace links

namespace L = links;

}  // namespace rensa

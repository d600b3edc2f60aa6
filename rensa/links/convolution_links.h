// Layers of convolutions. The number of input channels may be `none`: W is then made at the first
// call. Constructors throw ValueError for a negative number of channels, for
// groups that do not divide the channels and for a ksize of neither one number nor one for each
// spatial axis; calls throw what the function throws.
#pragma once

#include <cstdint>
#include <optional>

#include "rensa/array/index.h"
#include "rensa/links/link_hook.h"

namespace rensa {
/// The options of convolutions.
namespace links {

struct ConvolutionLinkOptions {
  rensa::detail::NamedOptions named = {};
  Shape stride = 1, pad = 0;      // one number, or one for each spatial axis
  bool nobias = false;            // no b
  Initializer initialW = {};      // LeCunNormal when left out
  Initializer initial_bias = {};  // 0 when left out
  bool cover_all = false;         // a last place of the kernel that reaches beyond the padding
  Shape dilate = 1;               // from one element of the kernel to the next
  std::int64_t groups = 1;        // channels fall into so many, each with its own filters
};

/// The options of deconvolutions.
struct DeconvolutionLinkOptions {
  rensa::detail::NamedOptions named = {};
  Shape stride = 1, pad = 0;      // one number, or one for each spatial axis
  bool nobias = false;            // no b
  Shape outsize = {};             // the spatial extents of y, where several are possible
  Initializer initialW = {};      // LeCunNormal when left out
  Initializer initial_bias = {};  // 0 when left out
  Shape dilate = 1;               // from one element of the kernel to the next
  std::int64_t groups = 1;        // channels fall into so many, each with its own filters
};

/// What a layer's constructor is told of its weights.
struct ConvolutionSizes {
  int axes;                        // spatial
  std::optional<std::int64_t> in;  // channels; made at the first call without
  std::int64_t out;                // channels of y
  Shape ksize;                     // one number, or one for each spatial axis
};

/// The parameters of layers of filters.
struct Filters {
  Parameter W, b;  // filters, and what is added to each channel; b is undefined with nobias
};

/// Puts the weights W of the model's convolutions and deconvolutions into memory with the channels
/// last, as F::channels_last does with a batch: then nothing is turned while it trains. Shapes and
/// files are as before. After to_gpu and the like, which give C-contiguous parameters; an
/// optimizer's states follow at the next update. Throws ValueError where a layer does not know its
/// channels yet.
void channels_last(Link& model);

/// What the layers of convolution_nd have in common: y = the convolution of x with W (out, in /
/// groups, ksize ...), plus b (out,).
template <class Derived>
class ConvolutionLink : public Chain<Derived>, public Hookable<Derived>, public Filters {
 public:
  void members(Visitor& v) override { v("W", W), v("b", b), this->hook_members(v); }
  Variable operator()(const Variable& x) const;

 protected:
  ConvolutionLink(const ConvolutionSizes& sizes, const ConvolutionLinkOptions& options);

 private:
  int axes_;
  std::int64_t out_, groups_;
  Shape ksize_, stride_, pad_, dilate_;
  bool cover_all_;
};

/// What the layers of deconvolution_nd have in common: y = the deconvolution of x with W (in, out /
/// groups, ksize ...), plus b (out,).
template <class Derived>
class DeconvolutionLink : public Chain<Derived>, public Hookable<Derived>, public Filters {
 public:
  static constexpr int kOutAxis = 1;  // of W
  void members(Visitor& v) override { v("W", W), v("b", b), this->hook_members(v); }
  Variable operator()(const Variable& x) const;

 protected:
  DeconvolutionLink(const ConvolutionSizes& sizes, const DeconvolutionLinkOptions& options);

 private:
  int axes_;
  std::int64_t out_, groups_;
  Shape ksize_, stride_, pad_, dilate_, outsize_;
};

/// F::convolution_nd over `ndim` spatial axes.
class ConvolutionND : public ConvolutionLink<ConvolutionND> {
 public:
  ConvolutionND(int ndim, None, std::int64_t out, const Shape& ksize,
                const ConvolutionLinkOptions& options = {});
  ConvolutionND(int ndim, std::int64_t in, std::int64_t out, const Shape& ksize,
                const ConvolutionLinkOptions& options = {});
};

/// F::deconvolution_nd over `ndim` spatial axes.
class DeconvolutionND : public DeconvolutionLink<DeconvolutionND> {
 public:
  DeconvolutionND(int ndim, None, std::int64_t out, const Shape& ksize,
                  const DeconvolutionLinkOptions& options = {});
  DeconvolutionND(int ndim, std::int64_t in, std::int64_t out, const Shape& ksize,
                  const DeconvolutionLinkOptions& options = {});
};

/// A layer of a fixed number of spatial axes, whose constructor takes in, out, ksize and options.
template <class Derived, int kAxes> class FixedConvolution : public ConvolutionLink<Derived> {
 public:
  using Options = ConvolutionLinkOptions;  // what constructors take
  /// Chainer's short form: GCC would take the options' braces for a ksize. `none` goes before.
  FixedConvolution(std::int64_t out, int ksize, const Options& options) = delete;
  FixedConvolution(None, std::int64_t out, const Shape& ksize, const Options& options = {})
      : ConvolutionLink<Derived>({kAxes, {}, out, ksize}, options) {}
  FixedConvolution(std::int64_t in, std::int64_t out, const Shape& ksize,
                   const Options& options = {})
      : ConvolutionLink<Derived>({kAxes, in, out, ksize}, options) {}
};
/// FixedConvolution's counterpart.
template <class Derived, int kAxes> class FixedDeconvolution : public DeconvolutionLink<Derived> {
 public:
  using Options = DeconvolutionLinkOptions;  // what constructors take
  FixedDeconvolution(std::int64_t out, int ksize, const Options& options) = delete;
  FixedDeconvolution(None, std::int64_t out, const Shape& ksize, const Options& options = {})
      : DeconvolutionLink<Derived>({kAxes, {}, out, ksize}, options) {}
  FixedDeconvolution(std::int64_t in, std::int64_t out, const Shape& ksize,
                     const Options& options = {})
      : DeconvolutionLink<Derived>({kAxes, in, out, ksize}, options) {}
};

/// Of one, two and three spatial axes.
struct Convolution1D : FixedConvolution<Convolution1D, 1> {
  using FixedConvolution::FixedConvolution;
};
/// Of two spatial axes.
struct Convolution2D : FixedConvolution<Convolution2D, 2> {
  using FixedConvolution::FixedConvolution;
};
/// Of three spatial axes.
struct Convolution3D : FixedConvolution<Convolution3D, 3> {
  using FixedConvolution::FixedConvolution;
};
/// Of one spatial axis.
struct Deconvolution1D : FixedDeconvolution<Deconvolution1D, 1> {
  using FixedDeconvolution::FixedDeconvolution;
};
/// Of two spatial axes.
struct Deconvolution2D : FixedDeconvolution<Deconvolution2D, 2> {
  using FixedDeconvolution::FixedDeconvolution;
};
/// Of three spatial axes.
struct Deconvolution3D : FixedDeconvolution<Deconvolution3D, 3> {
  using FixedDeconvolution::FixedDeconvolution;
};
/// Convolution2D, whose `dilate` it was before that had one.
struct DilatedConvolution2D : FixedConvolution<DilatedConvolution2D, 2> {
  using FixedConvolution::FixedConvolution;
};

/// The options of DepthwiseConvolution2D.
struct DepthwiseConvolutionLinkOptions {
  rensa::detail::NamedOptions named = {};
  Shape stride = 1, pad = 0;      // one number, or {height, width}
  bool nobias = false;            // no b
  Initializer initialW = {};      // HeNormal(sqrt(1 / 2)) when left out
  Initializer initial_bias = {};  // 0 when left out
};

/// F::depthwise_convolution_2d: W is (multiplier, in, kh, kw), b (in * multiplier,).
class DepthwiseConvolution2D : public Chain<DepthwiseConvolution2D>,
                               public Hookable<DepthwiseConvolution2D> {
 public:
  using Options = DepthwiseConvolutionLinkOptions;  // what constructors take
  DepthwiseConvolution2D(None, std::int64_t channel_multiplier, const Shape& ksize,
                         const Options& options = {});
  DepthwiseConvolution2D(std::int64_t in, std::int64_t channel_multiplier, const Shape& ksize,
                         const Options& options = {});
  void members(Visitor& v) override { v("W", W), v("b", b), hook_members(v); }
  Variable operator()(const Variable& x) const;

  Parameter W, b;

 private:
  void initialize(std::int64_t in) const;
  std::int64_t multiplier_;
  Shape ksize_, stride_, pad_;
};

/// The options of LocalConvolution2D.
struct LocalConvolutionLinkOptions {
  rensa::detail::NamedOptions named = {};
  Shape stride = 1;               // one number, or {height, width}
  bool nobias = false;            // no b
  Initializer initialW = {};      // LeCunNormal when left out
  Initializer initial_bias = {};  // 0 when left out
};

/// F::local_convolution_2d: W is (out, out_h, out_w, in, kh, kw), b (out, out_h, out_w). Without
/// the size of images both are made at the first call.
class LocalConvolution2D : public Chain<LocalConvolution2D>, public Hookable<LocalConvolution2D> {
 public:
  using Options = LocalConvolutionLinkOptions;  // what constructors take
  LocalConvolution2D(None, std::int64_t out, None, const Shape& ksize, const Options& options = {});
  LocalConvolution2D(std::int64_t in, std::int64_t out, const Shape& in_size, const Shape& ksize,
                     const Options& options = {});
  void members(Visitor& v) override { v("W", W), v("b", b), hook_members(v); }
  Variable operator()(const Variable& x) const;

  Parameter W, b;

 private:
  void initialize(std::int64_t in, const Shape& in_size) const;
  std::int64_t out_;
  Shape ksize_, stride_;
};

}  // namespace links

// Made once, in convolution_links.cc: what users' files would compile again for each of their own.
extern template class Chain<links::Convolution1D>;
extern template class links::ConvolutionLink<links::Convolution1D>;
extern template class links::FixedConvolution<links::Convolution1D, 1>;
extern template class Chain<links::Convolution2D>;
extern template class links::ConvolutionLink<links::Convolution2D>;
extern template class links::FixedConvolution<links::Convolution2D, 2>;
extern template class Chain<links::Convolution3D>;
extern template class links::ConvolutionLink<links::Convolution3D>;
extern template class links::FixedConvolution<links::Convolution3D, 3>;
extern template class Chain<links::DilatedConvolution2D>;
extern template class links::ConvolutionLink<links::DilatedConvolution2D>;
extern template class links::FixedConvolution<links::DilatedConvolution2D, 2>;
extern template class Chain<links::Deconvolution1D>;
extern template class links::DeconvolutionLink<links::Deconvolution1D>;
extern template class links::FixedDeconvolution<links::Deconvolution1D, 1>;
extern template class Chain<links::Deconvolution2D>;
extern template class links::DeconvolutionLink<links::Deconvolution2D>;
extern template class links::FixedDeconvolution<links::Deconvolution2D, 2>;
extern template class Chain<links::Deconvolution3D>;
extern template class links::DeconvolutionLink<links::Deconvolution3D>;
extern template class links::FixedDeconvolution<links::Deconvolution3D, 3>;
extern template class Chain<links::ConvolutionND>;
extern template class links::ConvolutionLink<links::ConvolutionND>;
extern template class Chain<links::DeconvolutionND>;
extern template class links::DeconvolutionLink<links::DeconvolutionND>;

namespace L = links;

}  // namespace rensa

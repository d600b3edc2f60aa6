// Layers of convolutions.
#include "rensa/links/convolution_links.h"

#include <fmt/format.h>

#include <cmath>

#include "rensa/autograd/graph.h"
#include "rensa/core/error.h"
#include "rensa/functions/convolution.h"
#include "rensa/links/initializers.h"

namespace rensa::links {

namespace {

Shape kernel_of(const char* layer, const Shape& ksize, int axes) {
  if (axes < 1) throw ValueError(fmt::format("{}: {} spatial axes", layer, axes));
  Shape kernel = ksize.size() == 1 ? Shape::filled(axes, ksize[0]) : ksize;
  if (kernel.size() != axes) {
    throw ValueError(fmt::format("{}: ksize {} is neither one number nor one for each of {} axes",
                                 layer, ksize.str(), axes));
  }
  return kernel;
}

void check_channels(const char* layer, const char* what, std::int64_t channels,
                    std::int64_t groups = 1) {
  if (channels < 0) throw ValueError(fmt::format("{}: {} {} channels", layer, channels, what));
  if (groups >= 1 && channels % groups == 0) return;
  throw ValueError(
      fmt::format("{}: groups {} for {} {} channels; it has to be at least 1 and "
                  "divide them",
                  layer, groups, channels, what));
}

/// Before W is made of x's channels.
void check_axes(const char* layer, const Variable& x, int axes) {
  if (x.ndim() == axes + 2) return;
  throw ShapeError(fmt::format("{}: x {} has to be (n, channels) and {} spatial axes", layer,
                               x.array().view().describe(), axes));
}

Shape with_kernel(std::int64_t a, std::int64_t b, const Shape& kernel) {
  Shape shape{a, b};
  for (std::int64_t k : kernel) shape.push_back(k);
  return shape;
}

Parameter named(const char* name, const Initializer& given, const Initializer& otherwise) {
  Parameter parameter(given ? given : otherwise);
  parameter.body()->name = name;
  return parameter;
}

}  // namespace

void channels_last(Link& model) {
  std::vector<Filters*> all;
  for (auto& [name, link] : model.namedlinks()) {
    auto* filters = dynamic_cast<Filters*>(link);
    if (!filters) continue;
    if (!filters->W.is_initialized()) {
      throw ValueError(fmt::format(
          "channels_last: {} {} does not know its channels yet; call it once before, or give "
          "them to its constructor",
          link->type_name(), name));
    }
    all.push_back(filters);
  }
  for (Filters* filters : all) {
    autograd::set_array(filters->W, F::channels_last(filters->W.array()));
  }
}

// --- Convolutions ---

template <class Derived>
ConvolutionLink<Derived>::ConvolutionLink(const ConvolutionSizes& sizes,
                                          const ConvolutionLinkOptions& o)
    : Filters{named("W", o.initialW, initializers::LeCunNormal()), {}},
      axes_(sizes.axes),
      out_(sizes.out),
      groups_(o.groups),
      ksize_(kernel_of("Convolution", sizes.ksize, sizes.axes)),
      stride_(o.stride),
      pad_(o.pad),
      dilate_(o.dilate),
      cover_all_(o.cover_all) {
  check_channels("Convolution", "output", out_, groups_);
  if (sizes.in) {
    check_channels("Convolution", "input", *sizes.in, groups_);
    W.initialize(with_kernel(out_, *sizes.in / groups_, ksize_));
  }
  if (o.nobias) return;
  b = named("b", o.initial_bias, 0);
  b.initialize({out_});
}

template <class Derived> Variable ConvolutionLink<Derived>::operator()(const Variable& x) const {
  if (!W.is_initialized()) {
    check_axes("Convolution", x, axes_);
    check_channels("Convolution", "input", x.shape(1), groups_);
    W.initialize(with_kernel(out_, x.shape(1) / groups_, ksize_));
  }
  auto* function = axes_ == 1   ? F::convolution_1d
                   : axes_ == 2 ? F::convolution_2d
                   : axes_ == 3 ? F::convolution_3d
                                : F::convolution_nd;
  return this->hooked(x, [&] {
    return function(x, W, b,
                    {.stride = stride_,
                     .pad = pad_,
                     .cover_all = cover_all_,
                     .dilate = dilate_,
                     .groups = groups_});
  });
}

template <class Derived>
DeconvolutionLink<Derived>::DeconvolutionLink(const ConvolutionSizes& sizes,
                                              const DeconvolutionLinkOptions& o)
    : Filters{named("W", o.initialW, initializers::LeCunNormal()), {}},
      axes_(sizes.axes),
      out_(sizes.out),
      groups_(o.groups),
      ksize_(kernel_of("Deconvolution", sizes.ksize, sizes.axes)),
      stride_(o.stride),
      pad_(o.pad),
      dilate_(o.dilate),
      outsize_(o.outsize) {
  check_channels("Deconvolution", "output", out_, groups_);
  if (sizes.in) {
    check_channels("Deconvolution", "input", *sizes.in, groups_);
    W.initialize(with_kernel(*sizes.in, out_ / groups_, ksize_));
  }
  if (o.nobias) return;
  b = named("b", o.initial_bias, 0);
  b.initialize({out_});
}

template <class Derived> Variable DeconvolutionLink<Derived>::operator()(const Variable& x) const {
  if (!W.is_initialized()) {
    check_axes("Deconvolution", x, axes_);
    check_channels("Deconvolution", "input", x.shape(1), groups_);
    W.initialize(with_kernel(x.shape(1), out_ / groups_, ksize_));
  }
  auto* function = axes_ == 1   ? F::deconvolution_1d
                   : axes_ == 2 ? F::deconvolution_2d
                   : axes_ == 3 ? F::deconvolution_3d
                                : F::deconvolution_nd;
  return this->hooked(x, [&] {
    return function(x, W, b,
                    {.stride = stride_,
                     .pad = pad_,
                     .outsize = outsize_,
                     .dilate = dilate_,
                     .groups = groups_});
  });
}

// --- Depthwise and local ones ---

DepthwiseConvolution2D::DepthwiseConvolution2D(None, std::int64_t channel_multiplier,
                                               const Shape& ksize, const Options& o)
    : W(named("W", o.initialW, initializers::HeNormal{std::sqrt(0.5)})),
      multiplier_(channel_multiplier),
      ksize_(kernel_of("DepthwiseConvolution2D", ksize, 2)),
      stride_(o.stride),
      pad_(o.pad) {
  check_channels("DepthwiseConvolution2D", "multiplied", multiplier_);
  if (!o.nobias) b = named("b", o.initial_bias, 0);
}

DepthwiseConvolution2D::DepthwiseConvolution2D(std::int64_t in, std::int64_t channel_multiplier,
                                               const Shape& ksize, const Options& o)
    : DepthwiseConvolution2D(none, channel_multiplier, ksize, o) {
  check_channels("DepthwiseConvolution2D", "input", in);
  initialize(in);
}

void DepthwiseConvolution2D::initialize(std::int64_t in) const {
  W.initialize(with_kernel(multiplier_, in, ksize_));
  if (b.defined()) b.initialize({multiplier_ * in});
}

Variable DepthwiseConvolution2D::operator()(const Variable& x) const {
  if (!W.is_initialized()) {
    check_axes("DepthwiseConvolution2D", x, 2);
    initialize(x.shape(1));
  }
  return hooked(
      x, [&] { return F::depthwise_convolution_2d(x, W, b, {.stride = stride_, .pad = pad_}); });
}

LocalConvolution2D::LocalConvolution2D(None, std::int64_t out, None, const Shape& ksize,
                                       const Options& o)
    : W(named("W", o.initialW, initializers::LeCunNormal())),
      out_(out),
      ksize_(kernel_of("LocalConvolution2D", ksize, 2)),
      stride_(kernel_of("LocalConvolution2D", o.stride, 2)) {
  check_channels("LocalConvolution2D", "output", out_);
  if (!o.nobias) b = named("b", o.initial_bias, 0);
}

LocalConvolution2D::LocalConvolution2D(std::int64_t in, std::int64_t out, const Shape& in_size,
                                       const Shape& ksize, const Options& o)
    : LocalConvolution2D(none, out, none, ksize, o) {
  check_channels("LocalConvolution2D", "input", in);
  initialize(in, kernel_of("LocalConvolution2D", in_size, 2));
}

void LocalConvolution2D::initialize(std::int64_t in, const Shape& in_size) const {
  Shape places;
  for (int i = 0; i < 2; ++i) {
    if (stride_[i] < 1 || ksize_[i] < 1 || ksize_[i] > in_size[i]) {
      throw ValueError(fmt::format(
          "LocalConvolution2D: ksize {} with stride {} of images {}: each is at least 1, and the "
          "kernel no larger than the image",
          ksize_.str(), stride_.str(), in_size.str()));
    }
    places.push_back((in_size[i] - ksize_[i]) / stride_[i] + 1);
  }
  W.initialize({out_, places[0], places[1], in, ksize_[0], ksize_[1]});
  if (b.defined()) b.initialize({out_, places[0], places[1]});
}

Variable LocalConvolution2D::operator()(const Variable& x) const {
  if (!W.is_initialized()) {
    check_axes("LocalConvolution2D", x, 2);
    initialize(x.shape(1), {x.shape(2), x.shape(3)});
  }
  return hooked(x, [&] { return F::local_convolution_2d(x, W, b, {.stride = stride_}); });
}

ConvolutionND::ConvolutionND(int ndim, None, std::int64_t out, const Shape& ksize,
                             const ConvolutionLinkOptions& options)
    : ConvolutionLink({ndim, {}, out, ksize}, options) {}
ConvolutionND::ConvolutionND(int ndim, std::int64_t in, std::int64_t out, const Shape& ksize,
                             const ConvolutionLinkOptions& options)
    : ConvolutionLink({ndim, in, out, ksize}, options) {}
DeconvolutionND::DeconvolutionND(int ndim, None, std::int64_t out, const Shape& ksize,
                                 const DeconvolutionLinkOptions& options)
    : DeconvolutionLink({ndim, {}, out, ksize}, options) {}
DeconvolutionND::DeconvolutionND(int ndim, std::int64_t in, std::int64_t out, const Shape& ksize,
                                 const DeconvolutionLinkOptions& options)
    : DeconvolutionLink({ndim, in, out, ksize}, options) {}

}  // namespace rensa::links

namespace rensa {
template class Chain<links::Convolution1D>;
template class links::ConvolutionLink<links::Convolution1D>;
template class links::FixedConvolution<links::Convolution1D, 1>;
template class Chain<links::Convolution2D>;
template class links::ConvolutionLink<links::Convolution2D>;
template class links::FixedConvolution<links::Convolution2D, 2>;
template class Chain<links::Convolution3D>;
template class links::ConvolutionLink<links::Convolution3D>;
template class links::FixedConvolution<links::Convolution3D, 3>;
template class Chain<links::DilatedConvolution2D>;
template class links::ConvolutionLink<links::DilatedConvolution2D>;
template class links::FixedConvolution<links::DilatedConvolution2D, 2>;
template class Chain<links::Deconvolution1D>;
template class links::DeconvolutionLink<links::Deconvolution1D>;
template class links::FixedDeconvolution<links::Deconvolution1D, 1>;
template class Chain<links::Deconvolution2D>;
template class links::DeconvolutionLink<links::Deconvolution2D>;
template class links::FixedDeconvolution<links::Deconvolution2D, 2>;
template class Chain<links::Deconvolution3D>;
template class links::DeconvolutionLink<links::Deconvolution3D>;
template class links::FixedDeconvolution<links::Deconvolution3D, 3>;
template class Chain<links::ConvolutionND>;
template class links::ConvolutionLink<links::ConvolutionND>;
template class Chain<links::DeconvolutionND>;
template class links::DeconvolutionLink<links::DeconvolutionND>;
}  // namespace rensa

// L::MLPConvolution2D.
#include "rensa/links/mlp_convolution.h"

#include <string>

#include "rensa/core/error.h"
#include "rensa/functions/activation.h"

namespace rensa::links {

MLPConvolution2D::MLPConvolution2D(std::optional<std::int64_t> in,
                                   const std::vector<std::int64_t>& out_channels,
                                   const Shape& ksize, const MLPConvolutionOptions& options)
    : activation(options.activation ? options.activation
                                    : [](const Variable& x) { return F::relu(x); }) {
  if (out_channels.empty()) throw ValueError("MLPConvolution2D: there are no out_channels");
  ConvolutionLinkOptions first = {.stride = options.stride,
                                  .pad = options.pad,
                                  .initialW = options.conv_init,
                                  .initial_bias = options.bias_init};
  if (in) layers.emplace_back(*in, out_channels[0], ksize, first);
  else layers.emplace_back(none, out_channels[0], ksize, first);
  for (std::size_t i = 1; i < out_channels.size(); ++i) {
    layers.emplace_back(
        out_channels[i - 1], out_channels[i], Shape{1},
        ConvolutionLinkOptions{.initialW = options.conv_init, .initial_bias = options.bias_init});
  }
}

MLPConvolution2D::MLPConvolution2D(None, const std::vector<std::int64_t>& out_channels,
                                   const Shape& ksize, const MLPConvolutionOptions& options)
    : MLPConvolution2D(std::optional<std::int64_t>(), out_channels, ksize, options) {}

void MLPConvolution2D::members(Visitor& v) {
  for (std::size_t i = 0; i < layers.size(); ++i) v(std::to_string(i), layers[i]);
}

Variable MLPConvolution2D::operator()(const Variable& x) const {
  Variable h = layers[0](x);
  for (std::size_t i = 1; i < layers.size(); ++i) h = layers[i](activation(h));
  return h;
}

}  // namespace rensa::links

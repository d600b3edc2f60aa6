// L::Inception and L::InceptionBN.
#include "rensa/links/inception.h"

#include <fmt/format.h>

#include "rensa/core/error.h"
#include "rensa/functions/activation.h"
#include "rensa/functions/joining_functions.h"
#include "rensa/functions/pooling.h"

namespace rensa::links {

namespace {

Convolution2D convolution(std::optional<std::int64_t> in, std::int64_t out, std::int64_t ksize,
                          const ConvolutionLinkOptions& options) {
  if (in) return Convolution2D(*in, out, Shape{ksize}, options);
  return Convolution2D(none, out, Shape{ksize}, options);
}

ConvolutionLinkOptions padded(const InceptionOptions& options, std::int64_t pad) {
  return {.pad = Shape{pad}, .initialW = options.conv_init, .initial_bias = options.bias_init};
}

ConvolutionLinkOptions without_bias(const InceptionBNOptions& options, std::int64_t stride,
                                    std::int64_t pad) {
  return {
      .stride = Shape{stride}, .pad = Shape{pad}, .nobias = true, .initialW = options.conv_init};
}

}  // namespace

Inception::Inception(std::optional<std::int64_t> in, std::int64_t out1, std::int64_t channels3,
                     std::int64_t out3, std::int64_t channels5, std::int64_t out5,
                     std::int64_t proj_pool, const InceptionOptions& options)
    : conv1(convolution(in, out1, 1, padded(options, 0))),
      proj3(convolution(in, channels3, 1, padded(options, 0))),
      conv3(convolution(channels3, out3, 3, padded(options, 1))),
      proj5(convolution(in, channels5, 1, padded(options, 0))),
      conv5(convolution(channels5, out5, 5, padded(options, 2))),
      projp(convolution(in, proj_pool, 1, padded(options, 0))) {}

Inception::Inception(None, std::int64_t out1, std::int64_t channels3, std::int64_t out3,
                     std::int64_t channels5, std::int64_t out5, std::int64_t proj_pool,
                     const InceptionOptions& options)
    : Inception(std::optional<std::int64_t>(), out1, channels3, out3, channels5, out5, proj_pool,
                options) {}

void Inception::members(Visitor& v) {
  v("conv1", conv1), v("proj3", proj3), v("conv3", conv3);
  v("proj5", proj5), v("conv5", conv5), v("projp", projp);
}

Variable Inception::operator()(const Variable& x) const {
  Variable y3 = conv3(F::relu(proj3(x))), y5 = conv5(F::relu(proj5(x)));
  Variable pooled = projp(F::max_pooling_2d(x, 3, 1, 1));
  return F::relu(F::concat({conv1(x), y3, y5, pooled}, 1));
}

InceptionBN::InceptionBN(std::optional<std::int64_t> in, std::int64_t out1, std::int64_t channels3,
                         std::int64_t out3, std::int64_t channels33, std::int64_t out33,
                         PoolType pooltype, std::optional<std::int64_t> proj_pool,
                         const InceptionBNOptions& options)
    : proj3(convolution(in, channels3, 1, without_bias(options, 1, 0))),
      conv3(convolution(channels3, out3, 3, without_bias(options, options.stride, 1))),
      proj33(convolution(in, channels33, 1, without_bias(options, 1, 0))),
      conv33a(convolution(channels33, out33, 3, without_bias(options, 1, 1))),
      conv33b(convolution(out33, out33, 3, without_bias(options, options.stride, 1))),
      proj3n(channels3),
      conv3n(out3),
      proj33n(channels33),
      conv33an(out33),
      conv33bn(out33),
      stride_(options.stride),
      pooltype_(pooltype) {
  if (out1 > 0 && (options.stride != 1 || !proj_pool)) {
    throw ValueError(
        fmt::format("InceptionBN: an out1 of {} with a stride of {} and {} proj_pool; it takes a "
                    "stride of 1 and a proj_pool, else has to be 0",
                    out1, options.stride, proj_pool ? "a" : "no"));
  }
  if (out1 > 0) {
    conv1.emplace(convolution(in, out1, 1, without_bias(options, 1, 0)));
    conv1n.emplace(out1);
  }
  if (proj_pool) {
    poolp.emplace(convolution(in, *proj_pool, 1, without_bias(options, 1, 0)));
    poolpn.emplace(*proj_pool);
  }
}

InceptionBN::InceptionBN(None, std::int64_t out1, std::int64_t channels3, std::int64_t out3,
                         std::int64_t channels33, std::int64_t out33, PoolType pooltype,
                         std::optional<std::int64_t> proj_pool, const InceptionBNOptions& options)
    : InceptionBN(std::optional<std::int64_t>(), out1, channels3, out3, channels33, out33, pooltype,
                  proj_pool, options) {}

void InceptionBN::members(Visitor& v) {
  v("proj3", proj3), v("conv3", conv3), v("proj33", proj33);
  v("conv33a", conv33a), v("conv33b", conv33b);
  v("proj3n", proj3n), v("conv3n", conv3n), v("proj33n", proj33n);
  v("conv33an", conv33an), v("conv33bn", conv33bn);
  v("conv1", conv1), v("conv1n", conv1n), v("poolp", poolp), v("poolpn", poolpn);
}

Variable InceptionBN::operator()(const Variable& x) const {
  auto layer = [](const Convolution2D& convolution, const BatchNormalization& normalization,
                  const Variable& h) { return F::relu(normalization(convolution(h))); };
  Variables parts;
  if (conv1) parts.push_back(layer(*conv1, *conv1n, x));
  parts.push_back(layer(conv3, conv3n, layer(proj3, proj3n, x)));
  Variable h = layer(conv33a, conv33an, layer(proj33, proj33n, x));
  parts.push_back(layer(conv33b, conv33bn, h));
  Variable pooled = pooltype_ == PoolType::max ? F::max_pooling_2d(x, 3, stride_, 1, false)
                                               : F::average_pooling_2d(x, 3, stride_, 1);
  parts.push_back(poolp ? layer(*poolp, *poolpn, pooled) : pooled);
  return F::concat(parts, 1);
}

}  // namespace rensa::links

// L::MLPConvolution2D: a convolution and layers of 1 x 1 behind it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "rensa/links/convolution_links.h"

namespace rensa {
namespace links {

struct MLPConvolutionOptions {
  Shape stride = 1, pad = 0;                                 // of the first convolution
  std::function<Variable(const Variable&)> activation = {};  // F::relu when left out
  Initializer conv_init = {};                                // LeCunNormal when left out
  Initializer bias_init = {};                                // 0 when left out
};

/// A convolution by `ksize`, then ones of 1 x 1, with out_channels[0], out_channels[1], ...
/// channels and `activation` between each two (Lin et al., "Network in network"). `in` may be none:
/// found at the first call. The layers are named by their numbers. Throws ValueError for no
/// out_channels.
class MLPConvolution2D : public Chain<MLPConvolution2D> {
 public:
  MLPConvolution2D(std::optional<std::int64_t> in, const std::vector<std::int64_t>& out_channels,
                   const Shape& ksize, const MLPConvolutionOptions& options = {});
  MLPConvolution2D(None, const std::vector<std::int64_t>& out_channels, const Shape& ksize,
                   const MLPConvolutionOptions& options = {});
  void members(Visitor& v) override;

  Variable operator()(const Variable& x) const;

  std::vector<Convolution2D> layers;
  std::function<Variable(const Variable&)> activation;
};

}  // namespace links

namespace L = links;

}  // namespace rensa

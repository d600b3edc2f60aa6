// L::NIN.
#pragma once

#include <cstdint>

#include "rensa/links/mlp_convolution.h"
#include "rensa/links/models/staged_network.h"

namespace rensa {
namespace links {

struct NINOptions {
  std::int64_t classes = 1000;
  Initializer initialW = {};  // HeNormal when left out
};

/// Of images x (n, 3, 227, 227) the scores (n, classes): Lin et al., "Network in network", as in
/// Chainer's example. Its stages are mlpconv1, pool1, mlpconv2, pool2, mlpconv3, pool3, mlpconv4,
/// pool4, prob.
class NIN : public StagedNetwork<NIN> {
 public:
  explicit NIN(const NINOptions& options = {});
  void members(Visitor& v) override;
  std::vector<Stage> stages() const;

  MLPConvolution2D mlpconv1, mlpconv2, mlpconv3, mlpconv4;
};

}  // namespace links

namespace L = links;

}  // namespace rensa

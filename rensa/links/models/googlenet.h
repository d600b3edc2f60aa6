// L::GoogLeNet.
#pragma once

#include <cstdint>

#include "rensa/links/inception.h"
#include "rensa/links/linear.h"
#include "rensa/links/models/staged_network.h"

namespace rensa {
namespace links {

struct GoogLeNetOptions {
  std::int64_t classes = 1000;
  Initializer initialW = {};  // LeCunUniform when left out
};

/// Of images x (n, 3, 224, 224) the scores (n, classes): Szegedy et al., "Going deeper with
/// convolutions". Its stages are conv1, pool1, conv2_reduce, conv2, pool2, inception_3a,
/// inception_3b, pool3, inception_4a ... inception_4e, pool4, inception_5a, inception_5b, pool5,
/// loss3_fc, prob, and the scores of its two auxiliary classifiers, loss1_fc2 and loss2_fc2, which
/// are trained with a weight of 0.3:
///
///   auto y = model(x, {"loss1_fc2", "loss2_fc2", "loss3_fc"});
class GoogLeNet : public StagedNetwork<GoogLeNet> {
 public:
  explicit GoogLeNet(const GoogLeNetOptions& options = {});
  void members(Visitor& v) override;
  std::vector<Stage> stages() const;

  Convolution2D conv1, conv2_reduce, conv2;
  /// By the names of stages.
  Inception inc3a, inc3b, inc4a, inc4b, inc4c, inc4d, inc4e, inc5a, inc5b;
  Linear loss3_fc;
  Convolution2D loss1_conv;     // of the first auxiliary classifier
  Linear loss1_fc1, loss1_fc2;  // likewise
  Convolution2D loss2_conv;     // of the second one
  Linear loss2_fc1, loss2_fc2;  // likewise
};

}  // namespace links

namespace L = links;

}  // namespace rensa

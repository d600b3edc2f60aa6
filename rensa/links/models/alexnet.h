// L::AlexNet.
#pragma once

#include <cstdint>

#include "rensa/links/convolution_links.h"
#include "rensa/links/linear.h"
#include "rensa/links/models/staged_network.h"

namespace rensa {
namespace links {

struct AlexNetOptions {
  std::int64_t classes = 1000;
  std::int64_t hidden = 4096;  // units of fc6 and fc7
  std::int64_t width = 96;     // channels of conv1; those of the other convolutions in proportion
};

/// Of images x (n, 3, 227, 227) the scores (n, classes): Krizhevsky et al., "ImageNet
/// classification with deep convolutional neural networks", on one device, as in Chainer's example.
/// Its stages are conv1, pool1, conv2, pool2, conv3, conv4, conv5, pool5, fc6, fc7, fc8, prob. fc6
/// waits for the size of the first images.
class AlexNet : public StagedNetwork<AlexNet> {
 public:
  explicit AlexNet(const AlexNetOptions& options = {});
  void members(Visitor& v) override;
  std::vector<Stage> stages() const;

  Convolution2D conv1, conv2, conv3, conv4, conv5;
  Linear fc6, fc7, fc8;
};

}  // namespace links

namespace L = links;

}  // namespace rensa

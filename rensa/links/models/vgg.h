// VGG's networks: L::VGG16Layers and L::VGG19Layers.
#pragma once

#include <cstdint>
#include <vector>

#include "rensa/links/convolution_links.h"
#include "rensa/links/linear.h"
#include "rensa/links/models/staged_network.h"
#include "rensa/links/normalization_links.h"

namespace rensa {
namespace links {

struct VGGOptions {
  bool batch_norm = false;  // between each convolution and its relu
  std::int64_t classes = 1000;
  std::vector<std::int64_t> hidden = {4096, 4096};  // units of the layers in front of the last one
  std::int64_t image_size = 224;                    // a multiple of 32
  double dropout = 0.5;                             // behind each hidden layer
  std::int64_t width = 64;                          // channels of conv1_1; all others in proportion
  Initializer initialW = {};                        // Normal(0.01) when left out
  double eps = 2e-5;                                // of the normalizations

  /// Of images of 32 x 32 in 10 classes, with batch normalization and one hidden layer of 512: the
  /// convolutions start from HeNormal, as batch normalization has no use for small weights.
  static VGGOptions cifar();
};

/// The members of a VGG network: conv1_1, (bn1_1,) conv1_2 ... conv5_3, fc6, fc7, fc8.
struct VGGParts {
  VGGParts(int convolutions_of_last_parts, const VGGOptions& options);
  void show(Visitor& v);              // shows all to a model's members()
  std::vector<Stage> stages() const;  // those of VGG16Layers, in their order

  std::vector<std::vector<Convolution2D>> conv;     // conv[0][1] is conv1_2
  std::vector<std::vector<BatchNormalization>> bn;  // of none without batch normalization
  std::vector<Linear> fc;                           // fc[0] is fc6
  double dropout;
};

/// The base of both VGG networks: a model of VGGParts.
template <class Derived> class VGGLink : public StagedNetwork<Derived>, public VGGParts {
 public:
  void members(Visitor& v) override { show(v); }

 protected:
  using VGGParts::VGGParts;
};

/// Of images x (n, 3, image_size, image_size) the scores (n, classes): Simonyan and Zisserman,
/// "Very deep convolutional networks for large-scale image recognition". Its stages are conv1_1,
/// conv1_2, pool1, ... pool5, fc6, fc7, fc8, prob. Constructors throw ValueError for an image_size
/// that is no multiple of 32.
struct VGG16Layers : VGGLink<VGG16Layers> {
  explicit VGG16Layers(const VGGOptions& options = {});
};
/// VGG16Layers with four convolutions in each of the last three parts.
struct VGG19Layers : VGGLink<VGG19Layers> {
  explicit VGG19Layers(const VGGOptions& options = {});
};

}  // namespace links

// Made once, in vgg.cc: what users' files would compile again for each of their own.
extern template class Chain<links::VGG16Layers>;
extern template class links::StagedNetwork<links::VGG16Layers>;
extern template class links::VGGLink<links::VGG16Layers>;
extern template class Chain<links::VGG19Layers>;
extern template class links::StagedNetwork<links::VGG19Layers>;
extern template class links::VGGLink<links::VGG19Layers>;

namespace L = links;

}  // namespace rensa

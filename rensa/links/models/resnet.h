// Residual networks: L::ResNet18Layers to L::ResNet152Layers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rensa/links/convolution_links.h"
#include "rensa/links/linear.h"
#include "rensa/links/models/staged_network.h"
#include "rensa/links/normalization_links.h"

namespace rensa {
namespace links {

/// Where published residual networks differ. Left out, they are Chainer's, of He et al.'s weights.
struct ResNetOptions {
  bool downsample_fb = false;  // stride 2 in the convolution of 3 x 3 and not in that of 1 x 1
  bool conv1_nobias = false;   // conv1 has no b
  bool padded_pool = false;    // pool1 pads by 1, and leaves out a last place that reaches beyond
  double eps = 2e-5;           // of the normalizations
  bool small_images = false;   // conv1 is of 3 x 3 without a stride, and there is no pool1
  std::int64_t classes = 1000;
  std::int64_t width = 64;    // channels of conv1; all others in proportion
  Initializer initialW = {};  // of the convolutions; HeNormal when left out

  /// Those of torchvision's weights ("v1.5").
  static ResNetOptions torchvision() {
    return {.downsample_fb = true, .conv1_nobias = true, .padded_pool = true, .eps = 1e-5};
  }
  /// The same for images of 32 x 32 in 10 classes.
  static ResNetOptions cifar() {
    ResNetOptions options = torchvision();
    options.small_images = true, options.classes = 10;
    return options;
  }
};

/// The sizes of a block, and what it is made of.
struct ResidualSizes {
  std::int64_t in, mid, out, stride;  // channels, and the stride
  bool bottleneck;                    // convolutions of 1 x 1, 3 x 3 and 1 x 1; else two of 3 x 3
};

/// relu(x plus its convolutions, each normalized, with relu between). The first block of several
/// has conv4, of 1 x 1, and bn4 for x where it changes its shape, and in a bottleneck always.
class ResidualBlock : public Chain<ResidualBlock> {
 public:
  ResidualBlock(const ResidualSizes& sizes, bool first, const ResNetOptions& options);
  void members(Visitor& v) override;

  Variable operator()(const Variable& x) const;

  Convolution2D conv1, conv2;                  // in their order
  BatchNormalization bn1, bn2;                 // behind conv1 and conv2
  std::optional<Convolution2D> conv3, conv4;   // of a bottleneck; of x
  std::optional<BatchNormalization> bn3, bn4;  // behind conv3 and conv4
};

/// `n_layers` blocks, named "a", "b1", "b2", ..., of which the first has the stride.
class BuildingBlock : public Chain<BuildingBlock> {
 public:
  BuildingBlock(std::int64_t n_layers, const ResidualSizes& sizes,
                const ResNetOptions& options = {});
  void members(Visitor& v) override;

  Variable operator()(const Variable& x) const;

  std::vector<ResidualBlock> blocks;
};

/// The members of a residual network: conv1, bn1, res2 ... res5, fc6.
struct ResNetParts {
  ResNetParts(const std::vector<std::int64_t>& blocks, bool bottleneck,
              const ResNetOptions& options);
  // Copies and moves as ever; made once, as users' files compile faster without.
  ResNetParts(const ResNetParts&);
  ResNetParts(ResNetParts&&) noexcept;
  ResNetParts& operator=(const ResNetParts&);
  ResNetParts& operator=(ResNetParts&&) noexcept;
  ~ResNetParts();
  /// Shows all to a model's members().
  void show(Visitor& v);
  std::vector<Stage> stages() const;  // those of ResNetLayers

  Convolution2D conv1;
  BatchNormalization bn1;
  BuildingBlock res2, res3, res4, res5;  // the parts between conv1 and fc6
  Linear fc6;
  bool padded_pool, small_images;
};

/// The base of the residual networks below: a model of ResNetParts.
template <class Derived> class ResNetLink : public StagedNetwork<Derived>, public ResNetParts {
 public:
  void members(Visitor& v) override { show(v); }

 protected:
  using ResNetParts::ResNetParts;
};

/// Of images x (n, 3, h, w) the scores (n, classes): He et al., "Deep residual learning for image
/// recognition". Its stages are conv1, pool1, res2, res3, res4, res5, pool5, fc6, prob. Chainer's
/// weights want images in the order BGR less {103.063, 115.903, 123.152}; torchvision's RGB / 255,
/// less {0.485, 0.456, 0.406}, divided by {0.229, 0.224, 0.225}.
struct ResNetLayers : ResNetLink<ResNetLayers> {
  /// `blocks` says how many there are in res2, res3, res4 and res5. Throws ValueError for other
  /// than four.
  ResNetLayers(const std::vector<std::int64_t>& blocks, bool bottleneck,
               const ResNetOptions& options = {});
};
/// ResNetLayers of 18 layers.
struct ResNet18Layers : ResNetLink<ResNet18Layers> {
  explicit ResNet18Layers(const ResNetOptions& options = {});
};
/// ResNetLayers of 34 layers.
struct ResNet34Layers : ResNetLink<ResNet34Layers> {
  explicit ResNet34Layers(const ResNetOptions& options = {});
};
/// ResNetLayers of 50 layers.
struct ResNet50Layers : ResNetLink<ResNet50Layers> {
  explicit ResNet50Layers(const ResNetOptions& options = {});
};
/// ResNetLayers of 101 layers.
struct ResNet101Layers : ResNetLink<ResNet101Layers> {
  explicit ResNet101Layers(const ResNetOptions& options = {});
};
/// ResNetLayers of 152 layers.
struct ResNet152Layers : ResNetLink<ResNet152Layers> {
  explicit ResNet152Layers(const ResNetOptions& options = {});
};

}  // namespace links

// Made once, in resnet.cc: what users' files would compile again for each of their own.
extern template class Chain<links::ResNetLayers>;
extern template class links::StagedNetwork<links::ResNetLayers>;
extern template class links::ResNetLink<links::ResNetLayers>;
extern template class Chain<links::ResNet18Layers>;
extern template class links::StagedNetwork<links::ResNet18Layers>;
extern template class links::ResNetLink<links::ResNet18Layers>;
extern template class Chain<links::ResNet34Layers>;
extern template class links::StagedNetwork<links::ResNet34Layers>;
extern template class links::ResNetLink<links::ResNet34Layers>;
extern template class Chain<links::ResNet50Layers>;
extern template class links::StagedNetwork<links::ResNet50Layers>;
extern template class links::ResNetLink<links::ResNet50Layers>;
extern template class Chain<links::ResNet101Layers>;
extern template class links::StagedNetwork<links::ResNet101Layers>;
extern template class links::ResNetLink<links::ResNet101Layers>;
extern template class Chain<links::ResNet152Layers>;
extern template class links::StagedNetwork<links::ResNet152Layers>;
extern template class links::ResNetLink<links::ResNet152Layers>;

namespace L = links;

}  // namespace rensa

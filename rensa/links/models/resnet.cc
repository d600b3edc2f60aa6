// Residual networks.
#include "rensa/links/models/resnet.h"

#include <fmt/format.h>

#include <string>

#include "rensa/core/error.h"
#include "rensa/functions/activation.h"
#include "rensa/functions/pooling.h"
#include "rensa/links/initializers.h"

namespace rensa::links {

namespace {

Convolution2D convolution(std::int64_t in, std::int64_t out, std::int64_t ksize,
                          std::int64_t stride, std::int64_t pad, bool nobias,
                          const ResNetOptions& options) {
  Initializer initialW =
      options.initialW ? options.initialW : Initializer(initializers::HeNormal());
  return {in,
          out,
          Shape{ksize},
          {.stride = stride, .pad = pad, .nobias = nobias, .initialW = initialW}};
}

BatchNormalization normalization(std::int64_t size, const ResNetOptions& options) {
  return BatchNormalization(size, {.eps = options.eps});
}

/// The blocks of res2 (part 0) to res5.
BuildingBlock part_of(const std::vector<std::int64_t>& blocks, int part, bool bottleneck,
                      const ResNetOptions& options) {
  if (blocks.size() != 4) {
    throw ValueError(fmt::format("ResNetLayers: {} numbers of blocks, not 4", blocks.size()));
  }
  std::int64_t mid = options.width << part, expansion = bottleneck ? 4 : 1;
  std::int64_t in = part == 0 ? mid : mid / 2 * expansion;
  return {blocks[static_cast<std::size_t>(part)],
          {in, mid, mid * expansion, part == 0 ? 1 : 2, bottleneck},
          options};
}

}  // namespace

ResidualBlock::ResidualBlock(const ResidualSizes& s, bool first, const ResNetOptions& options)
    : conv1(convolution(s.in, s.mid, s.bottleneck ? 1 : 3,
                        s.bottleneck && options.downsample_fb ? 1 : s.stride, s.bottleneck ? 0 : 1,
                        true, options)),
      conv2(convolution(s.mid, s.mid, 3, s.bottleneck && options.downsample_fb ? s.stride : 1, 1,
                        true, options)),
      bn1(normalization(s.mid, options)),
      bn2(normalization(s.mid, options)) {
  if (s.bottleneck) {
    conv3.emplace(convolution(s.mid, s.out, 1, 1, 0, true, options));
    bn3.emplace(normalization(s.out, options));
  }
  if (first && (s.bottleneck || s.stride != 1 || s.in != s.out)) {
    conv4.emplace(convolution(s.in, s.out, 1, s.stride, 0, true, options));
    bn4.emplace(normalization(s.out, options));
  }
}

void ResidualBlock::members(Visitor& v) {
  v("conv1", conv1), v("bn1", bn1), v("conv2", conv2), v("bn2", bn2);
  v("conv3", conv3), v("bn3", bn3), v("conv4", conv4), v("bn4", bn4);
}

// Step by step: what a step was made of goes before the next one, where nobody needs it for
// gradients. Temporaries of one expression would all live to its end.
Variable ResidualBlock::operator()(const Variable& x) const {
  Variable h = conv1(x);
  h = bn1(h);
  h = F::relu(h);
  h = conv2(h);
  h = bn2(h);
  if (conv3) {
    h = F::relu(h);
    h = (*conv3)(h);
    h = (*bn3)(h);
  }
  Variable shortcut = x;
  if (conv4) {
    shortcut = (*conv4)(x);
    shortcut = (*bn4)(shortcut);
  }
  h = h + shortcut;
  shortcut = {};
  return F::relu(h);
}

BuildingBlock::BuildingBlock(std::int64_t n_layers, const ResidualSizes& sizes,
                             const ResNetOptions& options) {
  ResidualSizes next = sizes;
  for (std::int64_t i = 0; i < n_layers; ++i) {
    blocks.emplace_back(next, i == 0, options);
    next.in = sizes.out, next.stride = 1;
  }
}

void BuildingBlock::members(Visitor& v) {
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    v(i == 0 ? std::string("a") : fmt::format("b{}", i), blocks[i]);
  }
}

Variable BuildingBlock::operator()(const Variable& x) const {
  Variable h = x;
  for (const ResidualBlock& block : blocks) h = block(h);
  return h;
}

ResNetParts::ResNetParts(const std::vector<std::int64_t>& blocks, bool bottleneck,
                         const ResNetOptions& options)
    : conv1(options.small_images
                ? convolution(3, options.width, 3, 1, 1, options.conv1_nobias, options)
                : convolution(3, options.width, 7, 2, 3, options.conv1_nobias, options)),
      bn1(normalization(options.width, options)),
      res2(part_of(blocks, 0, bottleneck, options)),
      res3(part_of(blocks, 1, bottleneck, options)),
      res4(part_of(blocks, 2, bottleneck, options)),
      res5(part_of(blocks, 3, bottleneck, options)),
      fc6(options.width * 8 * (bottleneck ? 4 : 1), options.classes),
      padded_pool(options.padded_pool),
      small_images(options.small_images) {}

ResNetParts::ResNetParts(const ResNetParts&) = default;
ResNetParts::ResNetParts(ResNetParts&&) noexcept = default;
ResNetParts& ResNetParts::operator=(const ResNetParts&) = default;
ResNetParts& ResNetParts::operator=(ResNetParts&&) noexcept = default;
ResNetParts::~ResNetParts() = default;

void ResNetParts::show(Visitor& v) {
  v("conv1", conv1), v("bn1", bn1), v("res2", res2), v("res3", res3), v("res4", res4);
  v("res5", res5), v("fc6", fc6);
}

std::vector<Stage> ResNetParts::stages() const {
  using V = const Variable&;
  std::vector<Stage> all = {{"conv1", [this](V x) { return F::relu(bn1(conv1(x))); }}};
  if (!small_images) {
    all.push_back({"pool1", [this](V x) {
                     return F::max_pooling_2d(x, 3, 2, padded_pool ? 1 : 0, !padded_pool);
                   }});
  }
  all.insert(all.end(), {{"res2", [this](V x) { return res2(x); }},
                         {"res3", [this](V x) { return res3(x); }},
                         {"res4", [this](V x) { return res4(x); }},
                         {"res5", [this](V x) { return res5(x); }},
                         {"pool5", global_average_pooling_2d},
                         {"fc6", [this](V x) { return fc6(x); }},
                         {"prob", [](V x) { return F::softmax(x); }}});
  return all;
}

ResNetLayers::ResNetLayers(const std::vector<std::int64_t>& blocks, bool bottleneck,
                           const ResNetOptions& options)
    : ResNetLink(blocks, bottleneck, options) {}
ResNet18Layers::ResNet18Layers(const ResNetOptions& options)
    : ResNetLink({2, 2, 2, 2}, false, options) {}
ResNet34Layers::ResNet34Layers(const ResNetOptions& options)
    : ResNetLink({3, 4, 6, 3}, false, options) {}
ResNet50Layers::ResNet50Layers(const ResNetOptions& options)
    : ResNetLink({3, 4, 6, 3}, true, options) {}
ResNet101Layers::ResNet101Layers(const ResNetOptions& options)
    : ResNetLink({3, 4, 23, 3}, true, options) {}
ResNet152Layers::ResNet152Layers(const ResNetOptions& options)
    : ResNetLink({3, 8, 36, 3}, true, options) {}

}  // namespace rensa::links

namespace rensa {
template class Chain<links::ResNetLayers>;
template class links::StagedNetwork<links::ResNetLayers>;
template class links::ResNetLink<links::ResNetLayers>;
template class Chain<links::ResNet18Layers>;
template class links::StagedNetwork<links::ResNet18Layers>;
template class links::ResNetLink<links::ResNet18Layers>;
template class Chain<links::ResNet34Layers>;
template class links::StagedNetwork<links::ResNet34Layers>;
template class links::ResNetLink<links::ResNet34Layers>;
template class Chain<links::ResNet50Layers>;
template class links::StagedNetwork<links::ResNet50Layers>;
template class links::ResNetLink<links::ResNet50Layers>;
template class Chain<links::ResNet101Layers>;
template class links::StagedNetwork<links::ResNet101Layers>;
template class links::ResNetLink<links::ResNet101Layers>;
template class Chain<links::ResNet152Layers>;
template class links::StagedNetwork<links::ResNet152Layers>;
template class links::ResNetLink<links::ResNet152Layers>;
}  // namespace rensa

// VGG's networks.
#include "rensa/links/models/vgg.h"

#include <fmt/format.h>

#include <algorithm>

#include "rensa/core/error.h"
#include "rensa/functions/activation.h"
#include "rensa/functions/noise.h"
#include "rensa/functions/pooling.h"
#include "rensa/links/initializers.h"

namespace rensa::links {

VGGOptions VGGOptions::cifar() {
  return {.batch_norm = true,
          .classes = 10,
          .hidden = {512},
          .image_size = 32,
          .initialW = initializers::HeNormal()};
}

VGGParts::VGGParts(int last, const VGGOptions& options) : dropout(options.dropout) {
  if (options.image_size < 32 || options.image_size % 32 != 0) {
    throw ValueError(fmt::format("VGG: images of {} x {}; five poolings by 2 want a multiple of 32",
                                 options.image_size, options.image_size));
  }
  Initializer initialW =
      options.initialW ? options.initialW : Initializer(initializers::Normal{0.01});
  std::int64_t in = 3;
  for (int part = 0; part < 5; ++part) {
    std::int64_t out = options.width << std::min(part, 3);
    auto& convolutions = conv.emplace_back();
    auto& normalizations = bn.emplace_back();
    for (int i = 0; i < (part < 2 ? 2 : last); ++i) {
      ConvolutionLinkOptions padded{.pad = 1, .initialW = initialW};
      convolutions.emplace_back(in, out, Shape{3}, padded);
      if (options.batch_norm) {
        normalizations.emplace_back(out, BatchNormalizationOptions{.eps = options.eps});
      }
      in = out;
    }
  }
  std::int64_t places = options.image_size / 32;
  in *= places * places;
  for (std::size_t i = 0; i <= options.hidden.size(); ++i) {
    std::int64_t out = i < options.hidden.size() ? options.hidden[i] : options.classes;
    fc.emplace_back(in, out, LinearOptions{.initialW = initialW});
    in = out;
  }
}

void VGGParts::show(Visitor& v) {
  for (std::size_t part = 0; part < conv.size(); ++part) {
    for (std::size_t i = 0; i < conv[part].size(); ++i) {
      v(fmt::format("conv{}_{}", part + 1, i + 1), conv[part][i]);
      if (!bn[part].empty()) v(fmt::format("bn{}_{}", part + 1, i + 1), bn[part][i]);
    }
  }
  for (std::size_t i = 0; i < fc.size(); ++i) v(fmt::format("fc{}", i + 6), fc[i]);
}

std::vector<Stage> VGGParts::stages() const {
  std::vector<Stage> all;
  for (std::size_t part = 0; part < conv.size(); ++part) {
    for (std::size_t i = 0; i < conv[part].size(); ++i) {
      all.push_back({fmt::format("conv{}_{}", part + 1, i + 1), [=, this](const Variable& x) {
                       Variable h = conv[part][i](x);
                       return F::relu(bn[part].empty() ? h : bn[part][i](h));
                     }});
    }
    all.push_back({fmt::format("pool{}", part + 1),
                   [](const Variable& x) { return F::max_pooling_2d(x, 2); }});
  }
  for (std::size_t i = 0; i < fc.size(); ++i) {
    all.push_back({fmt::format("fc{}", i + 6), [=, this](const Variable& x) {
                     Variable h = fc[i](x);
                     return i + 1 == fc.size() ? h : F::dropout(F::relu(h), dropout);
                   }});
  }
  all.push_back({"prob", [](const Variable& x) { return F::softmax(x); }});
  return all;
}

VGG16Layers::VGG16Layers(const VGGOptions& options) : VGGLink(3, options) {}
VGG19Layers::VGG19Layers(const VGGOptions& options) : VGGLink(4, options) {}

}  // namespace rensa::links

namespace rensa {
template class Chain<links::VGG16Layers>;
template class links::StagedNetwork<links::VGG16Layers>;
template class links::VGGLink<links::VGG16Layers>;
template class Chain<links::VGG19Layers>;
template class links::StagedNetwork<links::VGG19Layers>;
template class links::VGGLink<links::VGG19Layers>;
}  // namespace rensa

// L::AlexNet.
#include "rensa/links/models/alexnet.h"

#include "rensa/functions/activation.h"
#include "rensa/functions/noise.h"
#include "rensa/functions/normalization.h"
#include "rensa/functions/pooling.h"

namespace rensa::links {

namespace {

/// Of the published number of channels.
std::int64_t channels(const AlexNetOptions& options, std::int64_t published) {
  return published * options.width / 96;
}

}  // namespace

AlexNet::AlexNet(const AlexNetOptions& o)
    : conv1(3, o.width, Shape{11}, {.stride = 4}),
      conv2(o.width, channels(o, 256), Shape{5}, {.pad = 2}),
      conv3(channels(o, 256), channels(o, 384), Shape{3}, {.pad = 1}),
      conv4(channels(o, 384), channels(o, 384), Shape{3}, {.pad = 1}),
      conv5(channels(o, 384), channels(o, 256), Shape{3}, {.pad = 1}),
      fc6(none, o.hidden),
      fc7(o.hidden, o.hidden),
      fc8(o.hidden, o.classes) {}

void AlexNet::members(Visitor& v) {
  v("conv1", conv1), v("conv2", conv2), v("conv3", conv3), v("conv4", conv4), v("conv5", conv5);
  v("fc6", fc6), v("fc7", fc7), v("fc8", fc8);
}

std::vector<Stage> AlexNet::stages() const {
  using V = const Variable&;
  auto pooled = [](V x) { return F::max_pooling_2d(F::local_response_normalization(x), 3, 2); };
  return {{"conv1", [this](V x) { return F::relu(conv1(x)); }},
          {"pool1", pooled},
          {"conv2", [this](V x) { return F::relu(conv2(x)); }},
          {"pool2", pooled},
          {"conv3", [this](V x) { return F::relu(conv3(x)); }},
          {"conv4", [this](V x) { return F::relu(conv4(x)); }},
          {"conv5", [this](V x) { return F::relu(conv5(x)); }},
          {"pool5", [](V x) { return F::max_pooling_2d(x, 3, 2); }},
          {"fc6", [this](V x) { return F::dropout(F::relu(fc6(x))); }},
          {"fc7", [this](V x) { return F::dropout(F::relu(fc7(x))); }},
          {"fc8", [this](V x) { return fc8(x); }},
          {"prob", [](V x) { return F::softmax(x); }}};
}

}  // namespace rensa::links

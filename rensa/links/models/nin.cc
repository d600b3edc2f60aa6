// L::NIN.
#include "rensa/links/models/nin.h"

#include "rensa/functions/activation.h"
#include "rensa/functions/noise.h"
#include "rensa/functions/pooling.h"
#include "rensa/links/initializers.h"

namespace rensa::links {

namespace {

MLPConvolutionOptions with(const NINOptions& options, std::int64_t stride, std::int64_t pad) {
  return {.stride = stride,
          .pad = pad,
          .conv_init = options.initialW ? options.initialW : Initializer(initializers::HeNormal())};
}

}  // namespace

NIN::NIN(const NINOptions& options)
    : mlpconv1(3, {96, 96, 96}, 11, with(options, 4, 0)),
      mlpconv2(96, {256, 256, 256}, 5, with(options, 1, 2)),
      mlpconv3(256, {384, 384, 384}, 3, with(options, 1, 1)),
      mlpconv4(384, {1024, 1024, options.classes}, 3, with(options, 1, 1)) {}

void NIN::members(Visitor& v) {
  v("mlpconv1", mlpconv1), v("mlpconv2", mlpconv2), v("mlpconv3", mlpconv3);
  v("mlpconv4", mlpconv4);
}

std::vector<Stage> NIN::stages() const {
  using V = const Variable&;
  auto pooled = [](V x) { return F::max_pooling_2d(x, 3, 2); };
  return {{"mlpconv1", [this](V x) { return F::relu(mlpconv1(x)); }},
          {"pool1", pooled},
          {"mlpconv2", [this](V x) { return F::relu(mlpconv2(x)); }},
          {"pool2", pooled},
          {"mlpconv3", [this](V x) { return F::relu(mlpconv3(x)); }},
          {"pool3", pooled},
          {"mlpconv4", [this](V x) { return mlpconv4(F::dropout(x)); }},
          {"pool4", global_average_pooling_2d},
          {"prob", [](V x) { return F::softmax(x); }}};
}

}  // namespace rensa::links

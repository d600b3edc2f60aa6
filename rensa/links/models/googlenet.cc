// L::GoogLeNet.
#include "rensa/links/models/googlenet.h"

#include "rensa/functions/activation.h"
#include "rensa/functions/noise.h"
#include "rensa/functions/normalization.h"
#include "rensa/functions/pooling.h"
#include "rensa/links/initializers.h"

namespace rensa::links {

namespace {

Initializer weights_of(const GoogLeNetOptions& options) {
  return options.initialW ? options.initialW : Initializer(initializers::LeCunUniform());
}

Convolution2D convolution(std::int64_t in, std::int64_t out, std::int64_t ksize,
                          std::int64_t stride, std::int64_t pad, const GoogLeNetOptions& options) {
  return {in, out, Shape{ksize}, {.stride = stride, .pad = pad, .initialW = weights_of(options)}};
}

Linear linear(std::int64_t in, std::int64_t out, const GoogLeNetOptions& options) {
  return {in, out, {.initialW = weights_of(options)}};
}

Variable normalized(const Variable& x) {
  return F::local_response_normalization(x, 5, 1, 1e-4 / 5);
}

Variable pooled(const Variable& x) { return F::max_pooling_2d(x, 3, 2); }

}  // namespace

// Chainer's own modules start from the default initializer, whatever the others do.
GoogLeNet::GoogLeNet(const GoogLeNetOptions& options)
    : conv1(convolution(3, 64, 7, 2, 3, options)),
      conv2_reduce(convolution(64, 64, 1, 1, 0, options)),
      conv2(convolution(64, 192, 3, 1, 1, options)),
      inc3a(192, 64, 96, 128, 16, 32, 32),
      inc3b(256, 128, 128, 192, 32, 96, 64),
      inc4a(480, 192, 96, 208, 16, 48, 64),
      inc4b(512, 160, 112, 224, 24, 64, 64),
      inc4c(512, 128, 128, 256, 24, 64, 64),
      inc4d(512, 112, 144, 288, 32, 64, 64),
      inc4e(528, 256, 160, 320, 32, 128, 128),
      inc5a(832, 256, 160, 320, 32, 128, 128),
      inc5b(832, 384, 192, 384, 48, 128, 128),
      loss3_fc(linear(1024, options.classes, options)),
      loss1_conv(convolution(512, 128, 1, 1, 0, options)),
      loss1_fc1(linear(2048, 1024, options)),
      loss1_fc2(linear(1024, options.classes, options)),
      loss2_conv(convolution(528, 128, 1, 1, 0, options)),
      loss2_fc1(linear(2048, 1024, options)),
      loss2_fc2(linear(1024, options.classes, options)) {}

void GoogLeNet::members(Visitor& v) {
  v("conv1", conv1), v("conv2_reduce", conv2_reduce), v("conv2", conv2);
  v("inc3a", inc3a), v("inc3b", inc3b), v("inc4a", inc4a), v("inc4b", inc4b), v("inc4c", inc4c);
  v("inc4d", inc4d), v("inc4e", inc4e), v("inc5a", inc5a), v("inc5b", inc5b);
  v("loss3_fc", loss3_fc);
  v("loss1_conv", loss1_conv), v("loss1_fc1", loss1_fc1), v("loss1_fc2", loss1_fc2);
  v("loss2_conv", loss2_conv), v("loss2_fc1", loss2_fc1), v("loss2_fc2", loss2_fc2);
}

std::vector<Stage> GoogLeNet::stages() const {
  using V = const Variable&;
  auto classified = [](V x, const Convolution2D& conv, const Linear& fc1, const Linear& fc2) {
    return fc2(F::relu(fc1(F::relu(conv(F::average_pooling_2d(x, 5, 3))))));
  };
  return {{"conv1", [this](V x) { return F::relu(conv1(x)); }},
          {"pool1", [](V x) { return normalized(pooled(x)); }},
          {"conv2_reduce", [this](V x) { return F::relu(conv2_reduce(x)); }},
          {"conv2", [this](V x) { return normalized(F::relu(conv2(x))); }},
          {"pool2", pooled},
          {"inception_3a", [this](V x) { return inc3a(x); }},
          {"inception_3b", [this](V x) { return inc3b(x); }},
          {"pool3", pooled},
          {"inception_4a", [this](V x) { return inc4a(x); }},
          {"inception_4b", [this](V x) { return inc4b(x); }},
          {"inception_4c", [this](V x) { return inc4c(x); }},
          {"inception_4d", [this](V x) { return inc4d(x); }},
          {"inception_4e", [this](V x) { return inc4e(x); }},
          {"pool4", pooled},
          {"inception_5a", [this](V x) { return inc5a(x); }},
          {"inception_5b", [this](V x) { return inc5b(x); }},
          {"pool5", [](V x) { return F::average_pooling_2d(x, 7, 1); }},
          {"loss3_fc", [this](V x) { return loss3_fc(F::dropout(x, 0.4)); }},
          {"prob", [](V x) { return F::softmax(x); }},
          {"loss1_fc2", [=, this](V x) { return classified(x, loss1_conv, loss1_fc1, loss1_fc2); },
           "inception_4a"},
          {"loss2_fc2", [=, this](V x) { return classified(x, loss2_conv, loss2_fc1, loss2_fc2); },
           "inception_4d"}};
}

}  // namespace rensa::links

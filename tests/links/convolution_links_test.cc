// Layers of convolutions: shapes, initial values, files, and a LeNet that learns.
#include "rensa/links/convolution_links.h"

#include <gtest/gtest.h>

#include "rensa/array/io.h"
#include "rensa/array/random_basics.h"
#include "rensa/array/statistics.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/capture.h"
#include "rensa/links/links.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/serializers/npz.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"

namespace rensa {
namespace {

/// A layer, an input, and the shapes of what it makes of it.
struct LayerCase {
  const char* name;
  AnyLink layer;
  Shape x, y, W, b;
};

std::vector<LayerCase> cases() {
  return {
      {"1d", L::Convolution1D(3, 4, 3), {2, 3, 9}, {2, 4, 7}, {4, 3, 3}, {4}},
      {"2d",
       L::Convolution2D(3, 4, {3, 2}, {.stride = 2, .pad = 1}),
       {2, 3, 6, 6},
       {2, 4, 3, 4},
       {4, 3, 3, 2},
       {4}},
      {"2d later", L::Convolution2D(none, 4, 3), {2, 6, 5, 5}, {2, 4, 3, 3}, {4, 6, 3, 3}, {4}},
      {"2d groups later",
       L::Convolution2D(none, 4, 3, {.groups = 2}),
       {2, 6, 5, 5},
       {2, 4, 3, 3},
       {4, 3, 3, 3},
       {4}},
      {"2d cover_all",
       L::Convolution2D(2, 4, 2, {.stride = 2, .cover_all = true}),
       {1, 2, 5, 5},
       {1, 4, 3, 3},
       {4, 2, 2, 2},
       {4}},
      {"3d",
       L::Convolution3D(2, 3, {1, 2, 3}),
       {1, 2, 3, 3, 3},
       {1, 3, 3, 2, 1},
       {3, 2, 1, 2, 3},
       {3}},
      {"nd", L::ConvolutionND(2, none, 3, 3), {1, 2, 5, 5}, {1, 3, 3, 3}, {3, 2, 3, 3}, {3}},
      {"dilated",
       L::DilatedConvolution2D(2, 3, 3, {.pad = 2, .dilate = 2}),
       {1, 2, 5, 5},
       {1, 3, 5, 5},
       {3, 2, 3, 3},
       {3}},
      {"de 1d", L::Deconvolution1D(3, 4, 3, {.stride = 2}), {2, 3, 4}, {2, 4, 9}, {3, 4, 3}, {4}},
      {"de 2d",
       L::Deconvolution2D(4, 6, 4, {.stride = 2, .pad = 1, .groups = 2}),
       {2, 4, 3, 3},
       {2, 6, 6, 6},
       {4, 3, 4, 4},
       {6}},
      {"de 2d later",
       L::Deconvolution2D(none, 4, 3, {.stride = 2, .outsize = {8, 7}}),
       {2, 3, 3, 3},
       {2, 4, 8, 7},
       {3, 4, 3, 3},
       {4}},
      {"de 3d",
       L::Deconvolution3D(2, 3, 2),
       {1, 2, 3, 3, 3},
       {1, 3, 4, 4, 4},
       {2, 3, 2, 2, 2},
       {3}},
      {"de nd", L::DeconvolutionND(2, 2, 3, 3), {1, 2, 3, 3}, {1, 3, 5, 5}, {2, 3, 3, 3}, {3}},
      {"depthwise",
       L::DepthwiseConvolution2D(3, 2, 3, {.pad = 1}),
       {2, 3, 4, 4},
       {2, 6, 4, 4},
       {2, 3, 3, 3},
       {6}},
      {"depthwise later",
       L::DepthwiseConvolution2D(none, 2, 3),
       {2, 3, 4, 4},
       {2, 6, 2, 2},
       {2, 3, 3, 3},
       {6}},
      {"local",
       L::LocalConvolution2D(3, 2, 5, 3, {.stride = 2}),
       {2, 3, 5, 5},
       {2, 2, 2, 2},
       {2, 2, 2, 3, 3, 3},
       {2, 2, 2}},
      {"local later",
       L::LocalConvolution2D(none, 2, none, 3),
       {2, 3, 5, 4},
       {2, 2, 3, 2},
       {2, 3, 2, 3, 3, 3},
       {2, 3, 2}},
  };
}

TEST(ConvolutionLinks, MakeTheirParametersAndGiveTheirShapes) {
  for (Device device : testing::test_devices()) {
    for (LayerCase& c : cases()) {
      SCOPED_TRACE(std::string(c.name) + " on " + device.str());
      c.layer->to(device);
      Variable y = c.layer(Variable(xp::ones(c.x, float32, device)));
      EXPECT_EQ(y.shape(), c.y);
      auto parameters = c.layer->namedparams();
      ASSERT_EQ(parameters.size(), 2u);
      EXPECT_EQ(parameters[0].path, "/W");
      EXPECT_EQ(parameters[0].parameter.shape(), c.W);
      EXPECT_EQ(parameters[0].parameter.device(), device);
      EXPECT_EQ(parameters[1].path, "/b");
      EXPECT_EQ(parameters[1].parameter.shape(), c.b);
      EXPECT_EQ(xp::absolute(parameters[1].parameter.array()).sum().item<float>(), 0);
    }
  }
}

TEST(ConvolutionLinks, AreTheirFunctions) {
  for (Device device : testing::test_devices()) {
    Array x = xp::random::uniform(-1, 1, {2, 4, 6, 5}, float32, device);
    L::Convolution2D conv(4, 6, 3, {.stride = 2, .pad = 1, .initial_bias = 0.5, .groups = 2});
    L::Deconvolution2D de(4, 6, 3, {.stride = 2, .nobias = true});
    conv.to(device), de.to(device);
    Variable want = F::convolution_2d(x, conv.W, conv.b, {.stride = 2, .pad = 1, .groups = 2});
    EXPECT_TRUE(xp::array_equal(conv(x).array(), want.array()));
    EXPECT_EQ(conv.b.array().min().item<float>(), 0.5f);
    EXPECT_FALSE(de.b.defined());
    want = F::deconvolution_2d(x, de.W, {}, {.stride = 2});
    EXPECT_TRUE(xp::array_equal(de(x).array(), want.array()));
  }
}

// The fan-in counts the kernel: 1 / (64 * 9); of a deconvolution W's second axis, as in Chainer.
TEST(ConvolutionLinks, InitialValuesHaveChainersScale) {
  xp::random::seed(0);
  auto deviation = [](const Parameter& W) { return W.array().std().item<float>(); };
  EXPECT_NEAR(deviation(L::Convolution2D(64, 64, 3).W), 1 / 24.f, 1e-3);
  EXPECT_NEAR(deviation(L::Deconvolution2D(64, 16, 3).W), 1 / 12.f, 1e-3);
  EXPECT_NEAR(deviation(L::DepthwiseConvolution2D(64, 16, 3).W), 1 / 24.f, 2e-3);
}

TEST(ConvolutionLinks, FilesHaveChainersNames) {
  testing::TemporaryFolder folder;
  for (LayerCase& c : cases()) {
    SCOPED_TRACE(c.name);
    Variable x(xp::random::uniform(-1, 1, c.x, float32, cpu()));
    (void)c.layer(x);
    serializers::save_npz(folder / "layer.npz", *c.layer);
    xp::NpzFile file = xp::load_npz(folder / "layer.npz");
    EXPECT_EQ(file["W"].shape(), c.W);
    EXPECT_EQ(file["b"].shape(), c.b);
  }
  // One that waits for its channels takes the file's.
  L::Convolution2D source(3, 4, 3), target(none, 4, 3);
  serializers::save_npz(folder / "conv.npz", source);
  serializers::load_npz(folder / "conv.npz", target);
  EXPECT_TRUE(xp::array_equal(source.W.array(), target.W.array()));
}

TEST(ConvolutionLinks, RefuseWhatDoesNotFit) {
  EXPECT_THROW(L::Convolution2D(3, 4, 3, {.groups = 2}), ValueError);
  EXPECT_THROW(L::Convolution2D(4, 3, 3, {.groups = 2}), ValueError);
  EXPECT_THROW(L::Convolution2D(3, -4, 3), ValueError);
  EXPECT_THROW(L::Convolution2D(3, 4, {3, 3, 3}), ValueError);
  EXPECT_THROW(L::Deconvolution2D(3, 4, 3, {.groups = 0}), ValueError);
  EXPECT_THROW(L::LocalConvolution2D(3, 4, 2, 3), ValueError);
  L::Convolution2D later(none, 4, 3);
  std::string text = testing::thrown<ShapeError>([&] { (void)later(xp::ones({2, 3, 5})); });
  EXPECT_NE(text.find("(2, 3, 5)"), std::string::npos) << text;
  EXPECT_FALSE(later.W.is_initialized());
  EXPECT_THROW((void)L::Convolution2D(none, 4, 3, {.groups = 2})(xp::ones({2, 3, 5, 5})),
               ValueError);
  EXPECT_THROW((void)L::Convolution2D(3, 4, 3)(xp::ones({2, 2, 5, 5})), ShapeError);
}

/// LeNet-5, whose poolings are strides.
struct LeNet : Chain<LeNet> {
  L::Convolution2D conv1{1, 6, 5, {.stride = 2, .pad = 2}};
  L::Convolution2D conv2{none, 16, 5, {.stride = 2}};
  L::Linear fc3{120}, fc4{84}, fc5{10};
  void members(Visitor& v) override {
    v("conv1", conv1), v("conv2", conv2), v("fc3", fc3), v("fc4", fc4), v("fc5", fc5);
  }
  Variable operator()(const Variable& x) const {
    Variable h = F::relu(conv2(F::relu(conv1(x))));
    return fc5(F::relu(fc4(F::relu(fc3(h)))));
  }
};

// Samples of ten kinds, each a pattern with noise.
TEST(ConvolutionLinks, LeNetLearnsTheSameCapturedAndEager) {
  for (Device device : testing::test_devices()) {
    SCOPED_TRACE(device.str());
    auto train = [&](bool captured) {
      xp::random::seed(7);
      Array t = xp::arange(40, int32, device) % 10;
      Array patterns = xp::random::uniform(0, 1, {10, 1, 28, 28}, float32, device);
      Array noise = xp::random::normal(0, 0.1, {40, 1, 28, 28}, float32, device);
      Array x = xp::take(patterns, t, 0) + noise;
      auto model = L::Classifier(LeNet());
      model.to(device);
      optimizers::Adam adam({.alpha = 0.003});
      adam.setup(model);
      CaptureCache cache({.replay_lists = true});
      auto step = [&](const Variables& in) { return Variables{adam.update(model, in[0], in[1])}; };
      std::vector<float> losses;
      for (int i = 0; i < 25; ++i) {
        Variables in{constant(x), constant(t)};
        losses.push_back((captured ? cache.call(step, in) : step(in))[0].item<float>());
      }
      if (captured) {
        EXPECT_GT(cache.stats().replays, 15) << cache.stats().last_fallback;
      }
      for (const ParameterRef& p : model.params()) {
        std::vector<float> values = p.array().to_vector<float>();
        losses.insert(losses.end(), values.begin(), values.end());
      }
      return losses;
    };
    std::vector<float> eager = train(false);
    EXPECT_LT(eager[24], 0.2f * eager[0]);
    EXPECT_EQ(train(true), eager);
  }
}

}  // namespace
}  // namespace rensa

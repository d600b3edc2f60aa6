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
struct Residual : Chain<Residual> {
  L::Convolution2D c1{3, 8, 3, {.pad = {1}}}, c2{8, 8, 3, {.pad = {1}}};
  L::Deconvolution2D up{8, 4, 2, {.stride = {2}}};
  L::BatchNormalization b1{8}, b2{8};
  void members(Visitor& v) override {
    v("c1", c1), v("c2", c2), v("up", up), v("b1", b1), v("b2", b2);
  }
  Variable operator()(const Variable& x) const {
    Variable h = F::relu(b1(c1(x)));
    h = F::max_pooling_2d(F::relu(h + b2(c2(h))), {2});
    return F::mean(F::square(up(F::dropout(h, 0.25))));
  }
};

/// What such a net is after some steps, and how many operations one of them is.
struct Trained {
  std::vector<Array> parameters;
  std::int64_t operations = 0;
};

Trained train_residual(const Optimizer& optimizer, Device device, bool last, bool captured) {
  xp::random::seed(4);
  Residual net;
  net.to(device);
  if (last) L::channels_last(net);
  optimizer.setup(net);
  Array x = xp::random::uniform(-1, 1, {4, 3, 8, 6}, float32, device);
  if (last) x = F::channels_last(x);
  auto step = [&](const Variables& in) {
    xp::random::seed(9);
    return Variables{optimizer.update(net, in[0])};
  };
  CaptureCache cache({.rewrite = false, .replay_lists = true});
  for (int i = 0; i < 6; ++i) (void)(captured ? cache.call(step, {x}) : step({x}));
  if (captured) {
    EXPECT_GT(cache.stats().replays, 0) << cache.stats().last_fallback;
  }
  Trained result{{}, cache.stats().operations};
  for (const ParameterRef& p : net.params()) {
    result.parameters.push_back(p.array());
    bool lies_last = p.ndim() == 4 && !p.array().is_contiguous();
    EXPECT_EQ(lies_last, last && p.ndim() == 4);
  }
  return result;
}

TEST(ConvolutionLinks, ModelsWithTheChannelsLastTrainWithoutCopies) {
  const std::function<Optimizer()> optimizers[] = {
      [] { return optimizers::MomentumSGD(0.05); },
      [] {
        Optimizer adam = optimizers::Adam(0.01);
        adam.add_hook(optimizer_hooks::WeightDecay(0.01));
        adam.add_hook(optimizer_hooks::GradientClipping(0.5));
        return adam;
      },
  };
  for (Device device : testing::test_devices()) {
    SCOPED_TRACE(device.str());
    for (const auto& make : optimizers) {
      Trained plain = train_residual(make(), device, false, true);
      Trained eager = train_residual(make(), device, true, false);
      Trained captured = train_residual(make(), device, true, true);
      EXPECT_EQ(captured.operations, plain.operations);
      for (std::size_t k = 0; k < plain.parameters.size(); ++k) {
        EXPECT_TRUE(xp::array_equal(captured.parameters[k], eager.parameters[k])) << k;
      }
    }
  }
  Residual net;
  Array before = net.c1.W.array().copy();
  L::channels_last(net);
  EXPECT_TRUE(xp::array_equal(net.c1.W.array(), before));
  EXPECT_EQ(net.copy().c1.W.array().strides(), net.c1.W.array().strides());
  struct Lazy : Chain<Lazy> {
    L::Convolution2D known{2, 4, 3}, c{none, 4, 3};
    void members(Visitor& v) override { v("known", known), v("c", c); }
    Variable operator()(const Variable& x) const { return c(x); }
  } lazy;
  EXPECT_THROW(L::channels_last(lazy), ValueError);
  EXPECT_TRUE(lazy.known.W.array().is_contiguous());
  EXPECT_THROW((void)F::channels_last(xp::ones({3, 4})), ShapeError);
}

// What an optimizer keeps of a parameter lies as the parameter does, whenever that is turned, and
// where somebody else writes to it.
TEST(ConvolutionLinks, StatesFollowParametersThatAreTurned) {
  for (Device device : testing::test_devices()) {
    for (auto [dtype, tolerance] : {std::pair{float32, 1e-5}, {float16, 4e-3}}) {
      SCOPED_TRACE(device.str() + " " + std::string(dtype_name(dtype)));
      Array expected;
      for (int turned_before : {9, 0, 3}) {
        xp::random::seed(4);
        UsingConfig<DefaultDtype> in(&Config::dtype, dtype);
        L::Convolution2D layer(2, 3, 3);
        layer.to(device);
        Optimizer adam = optimizers::Adam(0.05);
        L::Convolution2D average = layer.copy(CopyMode::copy);
        adam.setup(layer).use_fp32_update().add_hook(
            optimizer_hooks::MovingAverage(layer, average, 0.5));
        Array x = xp::random::uniform(-1, 1, {2, 2, 5, 5}, float32, device).astype(dtype);
        for (int i = 0; i < 6; ++i) {
          if (i == turned_before) L::channels_last(layer);
          if (i == 4) layer.W.array() *= 0.5f;
          adam.update([&](const Variable& v) { return F::mean(F::square(layer(v))); }, x);
          EXPECT_EQ(layer.W.grad().strides(), layer.W.array().strides());
        }
        Array all = xp::concatenate({layer.W.array().ravel(), average.W.array().ravel()});
        all = all.astype(float64);
        if (!expected.defined()) expected = all;
        EXPECT_TRUE(xp::allclose(all, expected, 10 * tolerance, tolerance));
      }
    }
  }
}

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

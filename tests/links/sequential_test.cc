// Lists of links, and links and functions one after the other.
#include "rensa/links/sequential.h"

#include <gmock/gmock.h>

#include "rensa/array/random_basics.h"
#include "rensa/core/error.h"
#include "rensa/functions/functions.h"
#include "rensa/links/links.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/serializers/npz.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using ::testing::HasSubstr;
using Values = std::vector<float>;

L::Linear times(double factor, std::int64_t size = 1) {
  return L::Linear(size, size,
                   {.nobias = true, .initialW = xp::eye(size, float32, cpu()) * factor});
}
Variable plus_one(const Variable& x) { return x + 1; }
float call(const Sequential& model, float x) {
  return model(xp::full({1, 1}, x, float32)).item<float>();
}

std::vector<std::string> paths(const Link& link) {
  std::vector<std::string> result;
  for (const NamedParameter& p : link.namedparams()) result.push_back(p.path);
  return result;
}

TEST(Sequential, CallsItsLayersInOrder) {
  int calls = 0;
  Sequential model(times(2), plus_one, times(3), [&](const Variable& x) { return ++calls, x; });
  EXPECT_EQ(call(model, 5), 33);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(model.size(), 4);
  EXPECT_EQ(paths(model), (std::vector<std::string>{"/0/W", "/1/W"}));  // links are counted alone
  EXPECT_EQ(Sequential()(xp::full({1}, 4, float32)).item<float>(), 4);
  EXPECT_EQ(Sequential(F::relu)(xp::full({1}, -4, float32)).item<float>(), 0);
}

TEST(Sequential, TheFirstLayerMayTakeSeveral) {
  Sequential model(L::Classifier(times(1, 3)), plus_one);
  Array x = xp::zeros({2, 3}), t = xp::zeros({2}, int32);
  EXPECT_NEAR(model(x, t).item<float>(), std::log(3) + 1, 1e-6);
  EXPECT_THAT(testing::thrown<ValueError>([&] { (void)Sequential(plus_one)(x, x); }),
              HasSubstr("takes one variable, not 2"));
  EXPECT_THROW((void)Sequential()(x, x), ValueError);
}

TEST(Sequential, NestsAndFlattens) {
  Sequential inner(times(2), plus_one), model(inner, Sequential(inner, times(5)), plus_one);
  EXPECT_EQ(call(model, 1), ((1 * 2 + 1) * 2 + 1) * 5 + 1);
  EXPECT_EQ(paths(model), (std::vector<std::string>{"/0/0/W", "/1/0/0/W", "/1/1/W"}));
  EXPECT_EQ(model.describe(),
            "Sequential(Sequential(Linear, function), Sequential(Sequential(Linear, function), "
            "Linear), function)");
  Sequential flat = model.flatten();
  EXPECT_EQ(flat.size(), 6);
  EXPECT_EQ(call(flat, 1), call(model, 1));
  model[0].as<Sequential>()[0].as<L::Linear>().W.array().fill(3);  // the arrays are shared
  EXPECT_EQ(call(flat, 1), call(model, 1));
}

TEST(Sequential, IsIndexedAndSliced) {
  Sequential model(times(2), plus_one, times(3), plus_one, times(4));
  EXPECT_TRUE(model[0].is_link());
  EXPECT_FALSE(model[1].is_link());
  EXPECT_EQ(&model[-1].as<L::Linear>(), &model[4].as<L::Linear>());
  EXPECT_EQ(call(model[Slice(0, 3)], 1), 9);
  EXPECT_EQ(call(model[Slice(none, none, 2)], 1), 24);
  EXPECT_EQ(call(model[Slice(-2, none)], 1), 8);
  EXPECT_EQ(model[Slice(2, 2)].size(), 0);
  Sequential part = model[Slice(0, 1)];
  model[0].as<L::Linear>().W.array().fill(7);
  EXPECT_EQ(call(part, 1), 7);
  EXPECT_THROW(model[5], IndexError);
  EXPECT_THROW(model[-6], IndexError);
  EXPECT_THAT(testing::thrown<ValueError>([&] { (void)model[1].link(); }), HasSubstr("function"));
  EXPECT_THAT(testing::thrown<ValueError>([&] { (void)model[0].as<Sequential>(); }),
              HasSubstr("is a Linear"));
}

TEST(Sequential, PartsShareParametersThatWaitForTheirShapes) {
  for (Device device : testing::test_devices()) {
    DeviceScope on(device);
    Sequential model(L::Linear(4), F::relu, Sequential(L::Linear(3)));
    Sequential head = model[Slice(0, 2)], flat = model.flatten(), copy = model.copy();
    Sequential twin = head.copy(), apart = model;
    Array x = xp::random::uniform(-1, 1, {2, 5}, float32, device);
    Variable y = head(x);
    EXPECT_TRUE(twin[0].as<L::Linear>().W.is_initialized());
    EXPECT_FALSE(apart[0].as<L::Linear>().W.is_initialized());
    Variable whole = model(x);
    EXPECT_TRUE(xp::array_equal(flat(x).array(), whole.array()));
    EXPECT_TRUE(xp::array_equal(copy(x).array(), whole.array()));
    EXPECT_TRUE(xp::array_equal(twin(x).array(), y.array()));
    EXPECT_EQ(twin[0].as<L::Linear>().W.array().data(), model[0].as<L::Linear>().W.array().data());
    EXPECT_FALSE(xp::array_equal(apart(x).array(), whole.array()));
  }
}

TEST(Sequential, WhatIsGivenIsCopied) {
  Sequential layers(times(2), plus_one), model(times(3)), nested(Sequential::Layer{layers});
  EXPECT_EQ(nested.describe(), "Sequential(Sequential(Linear, function))");
  EXPECT_EQ(Sequential(layers).describe(), layers.describe());
  model.extend(layers);
  model.extend(layers.copy());
  layers[0].as<L::Linear>().W.array().fill(5);
  EXPECT_EQ(call(model, 1), (3 * 2 + 1) * 5 + 1);
}

/// A function that lasts: it keeps a mean, and is scaled by a parameter.
struct Centred {
  Parameter scale{Initializer(2), {1}};
  Persistent mean;
  Variable operator()(const Variable& x) {
    if (config().train) mean = x.array().mean(0);
    return (x - mean) * scale;
  }
  void members(Visitor& v) { v("scale", scale), v("mean", mean); }
};

TEST(Sequential, AFunctionWithMembersLasts) {
  testing::TemporaryFolder folder;
  for (Device device : testing::test_devices()) {
    Sequential model(times(2), Centred(), Sequential::Layer("second", Centred()));
    EXPECT_EQ(paths(model), (std::vector<std::string>{"/0/W", "/1/scale", "/2/scale"}));
    EXPECT_EQ(model.describe(), "Sequential(Linear, function, second)");
    model.to(device);
    Variable y = model(xp::array({{1.f}, {3.f}}, device));
    EXPECT_EQ(y.array().to_vector<float>(), (Values{-8, 8}));
    serializers::save_npz(folder / "a.npz", model);
    Sequential read(times(1), Centred(), Sequential::Layer("second", Centred()));
    read.to(device);
    serializers::load_npz(folder / "a.npz", read);
    UsingConfig not_training(&Config::train, false);
    EXPECT_EQ(read(xp::array({{1.f}}, device)).item<float>(), -8);
    EXPECT_THAT(read.str(), HasSubstr("/1/mean (persistent)"));
  }
}

TEST(Sequential, EmptyLayersAreRefused) {
  Sequential model;
  EXPECT_THROW(model.append(AnyLink()), ValueError);
  EXPECT_THROW(model.insert(0, std::unique_ptr<Link>()), ValueError);
  EXPECT_THROW(model.append(Sequential::Function()), ValueError);
  EXPECT_EQ(model.size(), 0);
}

TEST(Sequential, AsThePageOfModelsHasIt) {
  Variable x(xp::ones({2, 4}));
  ChainList branches(L::Linear(8), Sequential(L::Linear(16), F::relu, L::Linear(8)));
  branches.append(L::Linear(8));
  Variable sum = branches[0](x) + branches[1](x) + branches[2](x);
  EXPECT_EQ(sum.shape(), (Shape{2, 8}));
  Sequential model(L::Linear(100), F::relu, L::Linear(10));
  Sequential features = model[Slice(0, 2)];  // shares the first layer's arrays with the model
  Variable y = model(x);                     // makes them
  EXPECT_EQ(y.shape(), (Shape{2, 10}));
  EXPECT_EQ(features(x).shape(), (Shape{2, 100}));
  EXPECT_EQ(paths(model), (std::vector<std::string>{"/0/W", "/0/b", "/1/W", "/1/b"}));
}

TEST(Sequential, IsAList) {
  Sequential model(times(2));
  model.append(plus_one);
  model.insert(1, times(3));
  model.insert(3, Sequential::Layer("half", [](const Variable& x) { return x * 0.5f; }));
  EXPECT_EQ(model.describe(), "Sequential(Linear, Linear, function, half)");
  EXPECT_EQ(call(model, 1), 3.5);
  EXPECT_EQ(model.pop().str(), "half");
  EXPECT_EQ(model.pop(0).as<L::Linear>().W.item<float>(), 2);
  EXPECT_EQ(call(model, 1), 4);
  EXPECT_EQ(paths(model), (std::vector<std::string>{"/0/W"}));
  model.extend(model);
  EXPECT_EQ(call(model, 1), 13);
  int links = 0;
  for (const Sequential::Layer& layer : model) links += layer.is_link();
  EXPECT_EQ(links, 2);
  EXPECT_THROW(model.insert(5, plus_one), IndexError);
  EXPECT_THROW(model.pop(4), IndexError);
}

TEST(Sequential, IsAValue) {
  Sequential model(times(2), plus_one);
  Sequential copy = model;
  copy[0].as<L::Linear>().W.array().fill(5);
  EXPECT_EQ(call(model, 1), 3);
  EXPECT_EQ(call(copy, 1), 6);
  Sequential shared = model.copy();
  model[0].as<L::Linear>().W.array().fill(7);
  EXPECT_EQ(call(shared, 1), 8);
  auto anchor = model.anchor();
  Sequential moved = std::move(model);
  EXPECT_EQ(anchor->link, &moved);
}

TEST(Sequential, Repeats) {
  Sequential same = times(2).repeat(3);
  EXPECT_EQ(call(same, 1), 8);
  EXPECT_EQ(paths(same), (std::vector<std::string>{"/0/W", "/1/W", "/2/W"}));
  Sequential fresh = L::Linear(4, 4).repeat(2);
  EXPECT_FALSE(
      xp::array_equal(fresh[0].as<L::Linear>().W.array(), fresh[1].as<L::Linear>().W.array()));
  EXPECT_EQ(times(2).repeat(0).size(), 0);
  EXPECT_THROW(times(2).repeat(-1), ValueError);
}

TEST(Sequential, LearnsIsSavedAndPrinted) {
  testing::TemporaryFolder folder;
  for (Device device : testing::test_devices()) {
    Sequential model(L::Linear(3), F::relu, L::Linear(1));
    model.to(device);
    Sequential twin = model;
    optimizers::SGD optimizer(0.1);
    optimizer.setup(model);
    Variable x(xp::ones({2, 2}, float32, device));
    optimizer.update([&] { return model(x).sum(); });
    serializers::save_npz(folder / "a.npz", model);
    serializers::load_npz(folder / "a.npz", twin);
    EXPECT_TRUE(xp::array_equal(twin(x).array(), model(x).array()));
    EXPECT_THAT(twin.str(), HasSubstr("Sequential(Linear, function, Linear)\nname"));
    EXPECT_THAT(twin.str(), HasSubstr("/1/W"));
  }
}

TEST(ChainList, HoldsLinksOfAnyClass) {
  ChainList list(times(2), Sequential(times(3), plus_one));
  list.append(L::Classifier(times(4)));
  EXPECT_EQ(list.size(), 3);
  EXPECT_EQ(paths(list), (std::vector<std::string>{"/0/W", "/1/0/W", "/2/predictor/W"}));
  EXPECT_EQ(list[1](xp::ones({1, 1})).item<float>(), 4);
  EXPECT_EQ(list[-1].as<L::Classifier<L::Linear>>().predictor.W.item<float>(), 4);
  float product = 1;
  for (AnyLink& link : list) product *= link->params()[0].item<float>();
  EXPECT_EQ(product, 24);
  ChainList copy = list;
  copy[0].as<L::Linear>().W.array().fill(9);
  EXPECT_EQ(list[0](xp::ones({1, 1})).item<float>(), 2);
  EXPECT_THROW(list[3], IndexError);
  EXPECT_THROW(list.append(AnyLink()), ValueError);
  EXPECT_THROW((void)*AnyLink(), ValueError);
  EXPECT_THROW((void)list.invoke({Variable(xp::ones({1, 1}))}), NotImplementedError);
}

TEST(ChainList, AClassDerivedFromItIsNotCopiedInPart) {
  struct Special : ChainList {
  } special;
  EXPECT_THAT(testing::thrown<NotImplementedError>([&] { (void)special.clone(); }),
              HasSubstr("Special derives from another Chain"));
}

}  // namespace
}  // namespace rensa

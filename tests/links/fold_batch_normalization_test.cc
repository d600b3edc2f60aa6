// Batch normalizations folded into the layers in front of them: the same answers by fewer
// functions, and what is left alone.
#include "rensa/links/fold_batch_normalization.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rensa/array/random_basics.h"
#include "rensa/autograd/autocast.h"
#include "rensa/autograd/function_hook.h"
#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/capture.h"
#include "rensa/links/links.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/serializers/npz.h"
#include "rensa/serializers/safetensors.h"
#include "tests/links/models/drawn.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using Names = std::vector<std::string>;
using Options = L::BatchNormalizationOptions;

/// Fills a model with numbers made of names: averages are those of no fresh normalization.
void fill(Link& model) {
  struct Fill final : PathVisitor {
    void parameter(std::string_view name, Parameter& p) override { set(name, p.array()); }
    void persistent(std::string_view name, Persistent& p) override { set(name, p); }
    void set(std::string_view name, const Array& array) {
      array.assign(
          testing::drawn_value(path(name), array.shape()).astype(array.dtype()).to(array.device()));
    }
  } walk;
  model.members(walk);
}

Array drawn_input(const Shape& shape, Device device) {
  return (testing::drawn("x", shape) * 2.0 - 1.0).astype(float32).to(device);
}

/// Counts the functions applied while it lives.
class Count : public FunctionHook {
 public:
  void forward_preprocess(const FunctionNode& node, const Variables&) override {
    ++functions;
    if (std::string(node.name()).find("normalization") != std::string::npos) ++normalizations;
  }
  int functions = 0, normalizations = 0;

 private:
  FunctionHookScope scope_{*this};
};

Variable tested(Link& model, const Variable& x) {
  UsingConfig off(&Config::train, false);
  no_backprop_mode no_graph;
  return model.invoke({x});
}

double distance(const Variable& a, const Variable& b) {
  Array x = a.array().astype(float64), y = b.array().astype(float64);
  return (xp::absolute(x - y).max() / xp::absolute(y).max()).item<double>();
}

/// Folds the model, `folded` normalizations of which are to go and `left` to stay.
L::FoldedNormalizations expect_folded(Link& model, const Variable& x, int folded, int left = 0,
                                      double tolerance = 1e-4) {
  Variable before = tested(model, x), after;
  L::FoldedNormalizations found = L::fold_batch_normalization(model, x);
  EXPECT_EQ(found.folded.size(), static_cast<std::size_t>(folded)) << found.str();
  EXPECT_EQ(found.left.size(), static_cast<std::size_t>(left)) << found.str();
  Count count;
  after = tested(model, x);
  EXPECT_EQ(count.normalizations, left);
  EXPECT_EQ(after.dtype(), before.dtype());
  EXPECT_LE(distance(after, before), tolerance);
  EXPECT_LE(found.moved, tolerance);
  return found;
}

/// A layer and a normalization.
template <class Layer> struct Pair : Chain<Pair<Layer>> {
  explicit Pair(Layer l, const Options& options = {}) : layer(std::move(l)), bn(none, options) {}
  void members(Visitor& v) override { v("layer", layer), v("bn", bn); }
  Variable operator()(const Variable& x) const { return F::tanh(bn(layer(x))); }
  Layer layer;
  L::BatchNormalization bn;
};

template <class Layer> void expect_pair(const Layer& layer, const Shape& x, Options options = {}) {
  for (Device device : testing::test_devices()) {
    if (device.is_cuda() && x.size() > 5) continue;  // cuDNN has at most 3 axes
    SCOPED_TRACE(layer.type_name() + " on " + device.str());
    for (auto [gamma, beta] : {std::pair{true, true}, {false, true}, {true, false}}) {
      options.use_gamma = gamma, options.use_beta = beta;
      Pair<Layer> model(layer, options);
      model.to(device);
      Variable in = drawn_input(x, device);
      (void)tested(model, in);
      fill(model);
      auto found = expect_folded(model, in, 1, 0, 1e-5);
      EXPECT_EQ(found.folded[0].normalization, "/bn");
      EXPECT_EQ(found.folded[0].layer, "/layer");
      EXPECT_EQ(found.str(), "1 of 1 batch normalizations folded");
      EXPECT_TRUE(model.bn.folded);
      EXPECT_EQ(model.params().size(), 2u);
    }
  }
}

TEST(FoldBatchNormalization, OfEachLayer) {
  for (bool nobias : {false, true}) {
    L::ConvolutionLinkOptions grouped{.pad = 1, .nobias = nobias, .groups = 2};
    expect_pair(L::Convolution1D(2, 4, 3, {.nobias = nobias}), {3, 2, 7});
    expect_pair(L::Convolution2D(none, 6, 3, grouped), {2, 4, 5, 6});
    expect_pair(L::Convolution3D(2, 3, 2, {.nobias = nobias}), {2, 2, 3, 4, 3});
    expect_pair(L::ConvolutionND(4, 1, 2, 2, {.nobias = nobias}), {2, 1, 3, 2, 3, 2});
    expect_pair(L::DilatedConvolution2D(2, 3, 2, {.nobias = nobias, .dilate = 2}), {2, 2, 5, 5});
    L::DeconvolutionLinkOptions up{.stride = 2, .nobias = nobias, .groups = 2};
    expect_pair(L::Deconvolution1D(4, 6, 3, up), {2, 4, 5});
    expect_pair(L::Deconvolution2D(4, 6, 3, up), {2, 4, 3, 3});
    expect_pair(L::Deconvolution3D(2, 3, 2, {.nobias = nobias}), {2, 2, 2, 3, 2});
    expect_pair(L::DeconvolutionND(2, none, 3, 2, {.nobias = nobias}), {2, 2, 3, 3});
    expect_pair(L::DepthwiseConvolution2D(3, 2, 3, {.nobias = nobias}), {2, 3, 5, 4});
    expect_pair(L::LocalConvolution2D(none, 3, none, 2, {.nobias = nobias}), {2, 2, 4, 3});
    expect_pair(L::Linear(none, 5, {.nobias = nobias}), {4, 3});
  }
  expect_pair(L::Linear(5), {4, 3}, {.axis = 0});
  expect_pair(L::Convolution2D(2, 4, 3), {3, 2, 5, 5}, {.eps = 0.5, .axis = {0, -1, 2}});
}

TEST(FoldBatchNormalization, OfNarrowAndMixedWeights) {
  for (Device device : testing::test_devices()) {
    struct Row {
      DefaultDtype dtype;
      Dtype of_x;
      double tolerance;
    };
    for (Row row : {Row{float64, float64, 1e-13}, Row{float16, float16, 5e-3},
                    Row{mixed16, float16, 5e-3}, Row{mixed_bf16, bfloat16, 4e-2}}) {
      UsingConfig in(&Config::dtype, row.dtype);
      Pair model(L::Convolution2D(3, 4, 3, {.nobias = true}));
      model.to(device);
      Variable x(drawn_input({2, 3, 6, 6}, device).astype(row.of_x));
      (void)tested(model, x);
      fill(model);
      expect_folded(model, x, 1, 0, row.tolerance);
      EXPECT_EQ(model.layer.W.dtype(), row.of_x);
      EXPECT_EQ(model.layer.b.dtype(), row.of_x);
    }
    Pair model(L::Convolution2D(3, 4, 3));
    model.to(device);
    Variable x = drawn_input({2, 3, 6, 6}, device);
    (void)tested(model, x);
    fill(model);
    Autocast on(bfloat16);
    expect_folded(model, x, 1, 0, 4e-2);
    EXPECT_EQ(model.layer.W.dtype(), float32);
    // Weights of float16 end at 65504.
    UsingConfig<DefaultDtype> half(&Config::dtype, mixed16);
    Pair narrow(L::Convolution2D(1, 1, 1, {.initialW = 4}));
    narrow.bn.gamma.initialize({1});
    narrow.bn.gamma.array().fill(50000);
    narrow.to(device);
    Autocast none_here(none);
    auto found = L::fold_batch_normalization(narrow, xp::full({1, 1, 1, 1}, 1e-3, float16, device));
    ASSERT_EQ(found.left.size(), 1u);
    EXPECT_EQ(found.left[0].reason, "float16 cannot hold the weights");
  }
}

TEST(FoldBatchNormalization, KeepsTheChannelsLast) {
  for (Device device : testing::test_devices()) {
    Pair model(L::Convolution2D(3, 4, 3));
    model.to(device);
    Variable x = F::channels_last(drawn_input({2, 3, 6, 6}, device));
    (void)tested(model, x);
    fill(model);
    L::channels_last(model);
    auto strides = model.layer.W.array().strides();
    expect_folded(model, x, 1, 0, 1e-5);
    EXPECT_EQ(model.layer.W.array().strides(), strides);
    EXPECT_FALSE(model.layer.W.array().is_contiguous());
  }
}

template <class Net> void expect_network(const Net& unfolded, const Shape& x, int normalizations) {
  for (Device device : testing::test_devices()) {
    Net net = unfolded;
    net.to(device);
    Variable in = drawn_input(x, device);
    (void)tested(net, in);
    fill(net);
    expect_folded(net, in, normalizations);
    expect_folded(net, in, 0);
  }
}

TEST(FoldBatchNormalization, OfPublishedNetworks) {
  L::ResNetOptions small = L::ResNetOptions::cifar();
  small.width = 4;
  expect_network(L::ResNet18Layers(small), {2, 3, 32, 32}, 20);
  L::ResNetOptions chainers{.classes = 10, .width = 4};
  expect_network(L::ResNet50Layers(chainers), {1, 3, 64, 64}, 53);
  L::VGGOptions vgg = L::VGGOptions::cifar();
  vgg.width = 4, vgg.hidden = {16};
  expect_network(L::VGG16Layers(vgg), {2, 3, 32, 32}, 13);
  expect_network(L::InceptionBN(4, 3, 2, 4, 2, 3, L::PoolType::avg, 2), {2, 4, 6, 6}, 7);
}

/// Two layers and two normalizations, called as a test says.
struct Two : Chain<Two> {
  using Call = std::function<Variable(const Two&, const Variable&)>;
  explicit Two(Call call) : call_(std::move(call)) {}
  void members(Visitor& v) override { v("a", a), v("b", b), v("bn", bn), v("more", more); }
  Variable operator()(const Variable& x) const { return call_(*this, x); }
  L::Convolution2D a{2, 2, 3, {.pad = 1}}, b{2, 2, 3, {.pad = 1}};
  L::BatchNormalization bn{2}, more{2};
  mutable Variable kept;

 private:
  Call call_;
};

struct LeftRow {
  Two::Call call;
  Names reasons;  // of /bn, and of /more
};

TEST(FoldBatchNormalization, WhatIsNotAPairIsLeft) {
  using V = const Variable&;
  const std::string other = "it was not called";
  const LeftRow rows[] = {
      {[](const Two& m, V x) { return m.a(F::relu(m.bn(x))); },
       {"its input is not what a layer of filters or a Linear gives", other}},
      {[](const Two& m, V x) { return m.bn(F::relu(m.a(x))); },
       {"its input is not what a layer of filters or a Linear gives", other}},
      {[](const Two& m, V x) {
         Variable h = m.a(x);
         return m.bn(h) + h;
       },
       {"a function takes what /a gives as well", other}},
      {[](const Two& m, V x) {
         Variable h = m.a(x);
         return m.bn(h) + m.more(h);
       },
       {"what /a gives is normalized more than once",
        "what /a gives is normalized more than once"}},
      {[](const Two& m, V x) {
         m.kept = m.a(x);
         return m.bn(m.kept);
       },
       {"what /a gives is kept, or given by the model", other}},
      {[](const Two& m, V x) {
         Variable left = m.bn(m.a(x));
         return left + m.bn(m.b(x));
       },
       {"it is called behind /a and /b", other}},
      {[](const Two& m, V x) { return m.bn(m.a(m.a(x))); },
       {"/a was called 2 times, the normalization 1 times", other}},
      {[](const Two& m, V x) { return m.bn(m.a(x)) + m.more(m.a(x)); },
       {"/a was called 2 times, the normalization 1 times",
        "/a was called 2 times, the normalization 1 times"}},
      {[](const Two& m, V x) { return m.bn(m.a(x)) + F::convolution_2d(x, m.a.W, {}, {.pad = 1}); },
       {"a function outside of /a takes its W", other}},
      {[](const Two& m, V x) { return m.bn(m.a(x)) * F::sum(m.bn.gamma); },
       {"a function outside of /bn takes its gamma", other}},
      {[](const Two& m, V x) {
         UsingConfig on(&Config::train, true);
         return m.bn(m.a(x));
       },
       {"it was called in training", other}},
  };
  for (const LeftRow& row : rows) {
    SCOPED_TRACE(row.reasons[0]);
    Two model(row.call);
    fill(model);
    Array W = model.a.W.array();
    auto found = L::fold_batch_normalization(model, drawn_input({2, 2, 4, 4}, cpu()));
    EXPECT_TRUE(found.folded.empty());
    ASSERT_EQ(found.left.size(), 2u) << found.str();
    for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(found.left[i].reason, row.reasons[i]);
    EXPECT_EQ(model.a.W.array().data(), W.data());
    EXPECT_FALSE(model.bn.folded);
    EXPECT_EQ(found.str(), "0 of 2 batch normalizations folded\n/bn: " + row.reasons[0] +
                               "\n/more: " + row.reasons[1]);
  }
}

TEST(FoldBatchNormalization, LayersWithOtherAxesHooksOrTiesAreLeft) {
  auto reason = [](Link& model, const Shape& x) {
    auto found = L::fold_batch_normalization(model, drawn_input(x, cpu()));
    EXPECT_EQ(found.folded.size(), 0u);
    return found.left.empty() ? std::string() : found.left.at(0).reason;
  };
  const std::string axes = "it does not normalize along the channels of /layer";
  Pair places(L::Convolution2D(2, 3, 1), {.axis = 0});
  EXPECT_EQ(reason(places, {2, 2, 3, 3}), axes);
  Pair rows(L::Convolution2D(2, 3, 1), {.axis = {0, 1, 3}});
  EXPECT_EQ(reason(rows, {2, 2, 3, 3}), axes);
  Pair hooked(L::Convolution2D(2, 3, 1));
  hooked.layer.add_hook(link_hooks::WeightStandardization());
  EXPECT_EQ(reason(hooked, {2, 2, 3, 3}), "/layer has hooks");
  struct Tied : Chain<Tied> {
    L::Linear a{3, 3}, b{3, 3};
    L::BatchNormalization bn{3};
    void members(Visitor& v) override { v.tied(b.W, a.W), v("a", a), v("b", b), v("bn", bn); }
    Variable operator()(const Variable& x) const { return bn(b(F::relu(a(x)))); }
  } tied;
  EXPECT_EQ(reason(tied, {2, 3}), "W of /b is another link's as well");
}

TEST(FoldBatchNormalization, LayersThatAreCalledTogetherTwiceAreFolded) {
  Two model([](const Two& m, const Variable& x) {
    Variable left = m.bn(m.a(x)), right = m.bn(m.a(x * 2.f));
    return m.more(m.b(left)) - right;
  });
  fill(model);
  expect_folded(model, drawn_input({2, 2, 5, 5}, cpu()), 2);
}

TEST(FoldBatchNormalization, OfBatchRenormalization) {
  struct Net : Chain<Net> {
    L::Linear layer{3, 4};
    L::BatchRenormalization bn{4};
    void members(Visitor& v) override { v("layer", layer), v("bn", bn); }
    Variable operator()(const Variable& x) const { return bn(layer(x)); }
  } net;
  fill(net);
  Variable x = drawn_input({5, 3}, cpu());
  EXPECT_EQ(expect_folded(net, x, 1).folded[0].normalization, "/bn");
  EXPECT_THROW(net(x), ValueError);
}

TEST(FoldBatchNormalization, OfARunOfOnesOwn) {
  Two model([](const Two& m, const Variable& x) { return m.bn(m.a(x)); });
  fill(model);
  Variable x = drawn_input({2, 2, 4, 4}, cpu());
  // What the run gives is to stay the same.
  auto found = L::fold_batch_normalization(model, [&] {
    Variable h = model.a(x);
    return Variables{model.bn(h), h};
  });
  EXPECT_EQ(found.left[0].reason, "what /a gives is kept, or given by the model");
  Variable before = tested(model, x);
  found = L::fold_batch_normalization(model, [&] { return Variables{model(x), model.more(x)}; });
  EXPECT_EQ(found.folded.size(), 1u);
  EXPECT_LE(distance(tested(model, x), before), 1e-5);
}

TEST(FoldBatchNormalization, WhatCannotBeComparedIsNotFolded) {
  Two model([](const Two& m, const Variable& x) { return m.bn(m.a(x)); });
  fill(model);
  Variable x = drawn_input({2, 2, 4, 4}, cpu());
  auto classes = [&] { return Variables{constant(model(x).array().argmax(1))}; };
  Array b = model.a.b.array().copy();
  EXPECT_THROW((void)L::fold_batch_normalization(model, classes), ValueError);
  EXPECT_TRUE(xp::array_equal(model.a.b.array(), b));
  EXPECT_FALSE(model.bn.folded);
}

TEST(FoldBatchNormalization, ATrainedModelWithoutStatisticsSaysWhatToDo) {
  Pair model(L::Convolution2D(2, 3, 3));
  Variable x = drawn_input({2, 2, 5, 5}, cpu());
  (void)L::fold_batch_normalization(model, x);
  std::string message = testing::thrown<ValueError>([&] { (void)model(x); });
  EXPECT_NE(message.find("train a copy made before fold_batch_normalization"), message.npos);
  EXPECT_NO_THROW(tested(model, x));
  // Frozen weights stay so.
  Pair frozen(L::Convolution2D(2, 3, 3, {.nobias = true}));
  frozen.disable_update();
  (void)L::fold_batch_normalization(frozen, x);
  EXPECT_FALSE(frozen.layer.b.update_enabled());
  EXPECT_EQ(frozen.layer.b.name(), "b");
}

/// All that a model keeps, by its names.
Names kept_by(Link& model) {
  struct Kept final : PathVisitor {
    void parameter(std::string_view name, Parameter& p) override { add(name, p.array()); }
    void persistent(std::string_view name, Persistent& p) override { add(name, p); }
    void value(std::string_view name, const Access&) override { all.push_back(path(name)); }
    void add(std::string_view name, const Array& a) { all.push_back(path(name) + " " + a.str()); }
    Names all;
  } walk;
  model.members(walk);
  return walk.all;
}

TEST(FoldBatchNormalization, LeavesTheModelAsItWasWhereItsAnswersMove) {
  const Two::Call calls[] = {
      // The array is taken past the functions.
      [](const Two& m, const Variable& x) {
        Variable h = m.a(x);
        return m.bn(h) + constant(h.array() * 2.f);
      },
      // A state goes from run to run.
      [](const Two& m, const Variable& x) {
        m.kept = m.kept.defined() ? m.kept + 1.f : x;
        return m.bn(m.a(m.kept));
      },
  };
  for (const Two::Call& call : calls) {
    for (bool nobias : {false, true}) {
      Two model(call);
      if (nobias) model.a = L::Convolution2D(2, 2, 3, {.pad = 1, .nobias = true});
      fill(model);
      Names before = kept_by(model);
      Variable x = drawn_input({2, 2, 4, 4}, cpu());
      std::string message =
          testing::thrown<ValueError>([&] { (void)L::fold_batch_normalization(model, x); });
      EXPECT_NE(message.find("what Two gives would move by"), message.npos) << message;
      EXPECT_EQ(kept_by(model), before);
      EXPECT_FALSE(model.bn.folded);
      auto found = L::fold_batch_normalization(model, x, {.tolerance = 1e9});
      EXPECT_EQ(found.folded.size(), 1u);
      EXPECT_GT(found.moved, 1e-2);
    }
  }
}

/// A model of two pairs, the first of which has parameters of the normalization's names alone.
struct Small : Chain<Small> {
  L::Convolution2D a{2, 3, 3}, b{3, 2, 2, {.nobias = true}};
  L::BatchNormalization bn_a{3, {.use_gamma = false, .use_beta = false}}, bn_b{2};
  void members(Visitor& v) override { v("a", a), v("b", b), v("bn_a", bn_a), v("bn_b", bn_b); }
  Variable operator()(const Variable& x) const { return bn_b(b(F::relu(bn_a(a(x))))); }
};
const Shape kSmall = {2, 2, 6, 6};

TEST(FoldBatchNormalization, FilesOfFoldedModelsAreTheirOwn) {
  testing::TemporaryFolder folder;
  Variable x = drawn_input(kSmall, cpu());
  Small model;
  fill(model);
  serializers::save_npz(folder / "whole.npz", model);
  Small folded(model);
  expect_folded(folded, x, 2);
  serializers::save_npz(folder / "folded.npz", folded);
  serializers::SaveSafetensorsOptions pytorchs{.names = serializers::pytorch_names()};
  serializers::save_safetensors(folder / "folded.safetensors", folded, pytorchs);

  // A fresh model that is folded likewise reads what a folded one wrote, and gives the same.
  auto want = tested(folded, x).to_vector<float>();
  Small fresh, other;
  (void)L::fold_batch_normalization(fresh, x), (void)L::fold_batch_normalization(other, x);
  serializers::load_npz(folder / "folded.npz", fresh);
  EXPECT_EQ(tested(fresh, x).to_vector<float>(), want);
  serializers::load_safetensors(folder / "folded.safetensors", other,
                                {.names = serializers::pytorch_names()});
  EXPECT_EQ(tested(other, x).to_vector<float>(), want);

  for (bool strict : {true, false}) {
    Names before = kept_by(fresh);
    std::string message = testing::thrown<SerializationError>(
        [&] { serializers::load_npz(folder / "whole.npz", fresh, {.strict = strict}); });
    EXPECT_NE(message.find("read the file first"), message.npos) << message;
    EXPECT_EQ(kept_by(fresh), before);
    Small whole;
    before = kept_by(whole);
    message = testing::thrown<SerializationError>(
        [&] { serializers::load_npz(folder / "folded.npz", whole, {.strict = strict}); });
    EXPECT_NE(message.find("call fold_batch_normalization of the model"), message.npos) << message;
    EXPECT_EQ(kept_by(whole), before);
  }
  // What was trained is read before.
  Small read;
  serializers::load_npz(folder / "whole.npz", read);
  expect_folded(read, x, 2);
  EXPECT_EQ(tested(read, x).to_vector<float>(), want);
}

TEST(FoldBatchNormalization, CopiesAreFoldedAndOthersAreNot) {
  Variable x = drawn_input(kSmall, cpu());
  Small model;
  fill(model);
  Small whole(model), shared = model.copy();  // of the model's arrays
  auto want = tested(whole, x).to_vector<float>();
  auto found = L::fold_batch_normalization(model, x);  // x: a batch as the model gets
  EXPECT_EQ(found.str(), "2 of 2 batch normalizations folded");
  auto folded = tested(model, x).to_vector<float>();
  EXPECT_EQ(tested(shared, x).to_vector<float>(), want);
  Small copied(model);
  EXPECT_EQ(tested(copied, x).to_vector<float>(), folded);
  EXPECT_EQ(tested(*model.clone(), x).to_vector<float>(), folded);
  EXPECT_THROW(copied(x), ValueError);
  Names before = kept_by(model);
  for (bool persistents : {true, false}) {
    EXPECT_THROW(model.copyparams(whole, persistents), ValueError);
    EXPECT_THROW(whole.copyparams(model, persistents), ValueError);
  }
  // Of normalizations without parameters the structure differs by what else they keep.
  Pair bare(L::Linear(2, 2), {.use_gamma = false, .use_beta = false});
  Pair twin(bare);
  Variable row = drawn_input({3, 2}, cpu());
  (void)tested(twin, row);
  (void)L::fold_batch_normalization(bare, row);
  for (bool persistents : {true, false}) {
    EXPECT_THROW(bare.copyparams(twin, persistents), ValueError);
  }
  EXPECT_EQ(kept_by(model), before);
  copied.a.W.array().fill(0);
  copied.copyparams(model);
  EXPECT_EQ(tested(copied, x).to_vector<float>(), folded);
}

TEST(FoldBatchNormalization, IsCapturedAnewWithFewerOperations) {
  for (Device device : testing::test_devices()) {
    Small model;
    fill(model);
    model.to(device);
    Array x = drawn_input(kSmall, device);
    auto step = [&](const Variables& in) { return Variables{tested(model, in[0])}; };
    CaptureCache cache({.rewrite = false, .replay_lists = true});
    std::vector<float> whole, folded, want;
    auto run = [&](std::vector<float>& values) {
      for (int i = 0; i < 5; ++i) values = cache.call(step, {x})[0].to_vector<float>();
    };
    run(whole);
    EXPECT_EQ(whole, tested(model, x).to_vector<float>());
    std::int64_t replays = cache.stats().replays, operations = cache.stats().operations;
    EXPECT_GT(replays, 0) << cache.stats().last_fallback;
    expect_folded(model, x, 2);
    want = tested(model, x).to_vector<float>();
    run(folded);
    EXPECT_EQ(folded, want);
    EXPECT_NE(folded, whole);
    EXPECT_GT(cache.stats().replays, replays) << cache.stats().last_fallback;
    EXPECT_LT(cache.stats().operations, operations);
  }
}

TEST(FoldBatchNormalization, InAStepThatIsRecordedStaysEager) {
  Small model;
  fill(model);
  Array x = drawn_input(kSmall, cpu());
  auto step = [&](const Variables& in) {
    (void)L::fold_batch_normalization(model, in[0]);
    return Variables{tested(model, in[0])};
  };
  CaptureCache cache({.replay_lists = true});
  for (int i = 0; i < 4; ++i) (void)cache.call(step, {x});
  EXPECT_EQ(cache.stats().replays, 0);
  EXPECT_NE(cache.stats().last_fallback.find("fold_batch_normalization"), std::string::npos);
}

}  // namespace
}  // namespace rensa

// Published networks against Chainer's, torchvision's and transformers'
// (tests/answers/links/networks.py): the names and extents of what they have, what they give, and
// their gradients.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "rensa/array/common_ufuncs.h"
#include "rensa/array/creation.h"
#include "rensa/array/routines.h"
#include "rensa/autograd/backward.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/functions.h"
#include "rensa/links/links.h"
#include "rensa/serializers/naming.h"
#include "tests/links/models/drawn.h"
#include "tests/recorded.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using serializers::Naming;

/// A network and how it is called; without a call only its names are asked for.
struct Made {
  std::shared_ptr<Link> link;
  std::function<Variable(const Variable&, const std::string& stage)> call;
};
struct NetworkRow {
  const char* name;
  std::function<Made()> make;
  Naming names = {};
};

template <class Net> Made made(Net net) {
  auto link = std::make_shared<Net>(std::move(net));
  return {link, [link](const Variable& x, const std::string& stage) -> Variable {
            if constexpr (requires { link->stages(); }) return (*link)(x, {stage}).at(stage);
            else return (*link)(x);
          }};
}

L::ResNetOptions resnet(bool downsample_fb) {
  return {.downsample_fb = downsample_fb, .initialW = 0};
}
L::ResNetOptions of_torchvision() {
  L::ResNetOptions options = L::ResNetOptions::torchvision();
  options.initialW = 0;
  return options;
}
L::ResNetOptions narrow_resnet(L::ResNetOptions options) {
  options.width = 2, options.classes = 10;
  return options;
}
L::VGGOptions vgg(bool batch_norm) { return {.batch_norm = batch_norm, .initialW = 0}; }
L::VGGOptions narrow_vgg() {
  return {.classes = 10, .hidden = {20, 30}, .image_size = 64, .width = 8};
}

std::vector<NetworkRow> rows() {
  Naming resnets = serializers::torchvision_resnet_names();
  auto vggs = serializers::torchvision_vgg_names;
  return {
      {"ResNet50Layers", [] { return made(L::ResNet50Layers(resnet(false))); }},
      {"ResNet50Layers downsample_fb", [] { return made(L::ResNet50Layers(resnet(true))); }},
      {"ResNet101Layers", [] { return made(L::ResNet101Layers(resnet(false))); }},
      {"ResNet152Layers", [] { return made(L::ResNet152Layers(resnet(false))); }},
      {"VGG16Layers", [] { return made(L::VGG16Layers(vgg(false))); }},
      {"VGG19Layers", [] { return made(L::VGG19Layers(vgg(false))); }},
      {"VGG16Layers narrow", [] { return made(L::VGG16Layers(narrow_vgg())); }},
      {"VGG19Layers narrow", [] { return made(L::VGG19Layers(narrow_vgg())); }},
      {"GoogLeNet", [] { return made(L::GoogLeNet()); }},
      {"AlexNet narrow",
       [] { return made(L::AlexNet({.classes = 10, .hidden = 20, .width = 24})); }},
      {"NIN", [] { return made(L::NIN()); }},
      {"ResNet18Layers", [] { return made(L::ResNet18Layers(of_torchvision())); }, resnets},
      {"ResNet18Layers cifar", [] { return made(L::ResNet18Layers(L::ResNetOptions::cifar())); },
       resnets},
      {"ResNet34Layers", [] { return made(L::ResNet34Layers(of_torchvision())); }, resnets},
      {"ResNet50Layers of torchvision", [] { return made(L::ResNet50Layers(of_torchvision())); },
       resnets},
      {"ResNet101Layers of torchvision", [] { return made(L::ResNet101Layers(of_torchvision())); },
       resnets},
      {"ResNet152Layers of torchvision", [] { return made(L::ResNet152Layers(of_torchvision())); },
       resnets},
      {"ResNetLayers narrow",
       [] {
         return made(L::ResNetLayers({2, 1, 1, 1}, true, narrow_resnet(of_torchvision())));
       },
       resnets},
      {"VGG16Layers cifar",
       [] {
         L::VGGOptions options = L::VGGOptions::cifar();
         options.eps = 1e-5;
         return made(L::VGG16Layers(options));
       },
       vggs(16, true)},
      {"VGG16Layers of torchvision", [] { return made(L::VGG16Layers(vgg(false))); },
       vggs(16, false)},
      {"VGG19Layers of torchvision", [] { return made(L::VGG19Layers(vgg(false))); },
       vggs(19, false)},
      {"VGG16Layers batch_norm", [] { return made(L::VGG16Layers(vgg(true))); }, vggs(16, true)},
      {"VGG19Layers batch_norm", [] { return made(L::VGG19Layers(vgg(true))); }, vggs(19, true)},
      {"GPT2 narrow",
       [] {
         return made(
             L::GPT2({.vocab_size = 11, .n_positions = 7, .n_embd = 8, .n_layer = 2, .n_head = 2}));
       },
       serializers::gpt2_names()},
  };
}

/// What files have of a network, by the names there.
class InFiles final : public PathVisitor {
 public:
  struct Member {
    Array array;  // undefined for a number
    ParameterRef parameter;
    bool transposed;
    Shape shape() const {
      if (!array.defined()) return {};
      return transposed ? array.T().shape() : array.shape();
    }
  };
  InFiles(const Link& link, const Naming& names) : names_(names) { Members(link).show(*this); }

  void parameter(std::string_view name, Parameter& p) override { add(name, p.array(), p.ref()); }
  void persistent(std::string_view name, Persistent& p) override { add(name, p, {}); }
  void value(std::string_view name, const Access&) override { add(name, {}, {}); }

  std::map<std::string, Member> all;

 private:
  void add(std::string_view name, const Array& array, const ParameterRef& parameter) {
    std::string key = path(name);
    auto stored = names_.name ? names_.name(key) : serializers::StoredName(key);
    bool first = all.emplace(stored.name, Member{array, parameter, stored.transposed}).second;
    EXPECT_TRUE(first) << stored.name;
  }
  const Naming& names_;
};

using Recorded = std::map<std::string, Array>;

class Networks : public ::testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    for (auto& [name, array] : testing::recorded_arrays("links/networks.npz")) {
      std::size_t bar = name.find('|');
      cases_[name.substr(0, bar)].emplace(name.substr(bar + 1), array);
    }
  }
  std::map<std::string, Recorded> cases_;
};

Shape shape_of(const Array& extents) {
  std::vector<int> values = extents.to_vector<int>();
  Shape shape;
  for (int n : values) shape.push_back(n);
  return shape;
}

/// The recorded arrays whose keys begin so, by the rest.
Recorded below(const Recorded& recorded, const std::string& prefix) {
  Recorded found;
  for (const auto& [key, array] : recorded) {
    if (key.starts_with(prefix)) found.emplace(key.substr(prefix.size()), array);
  }
  return found;
}

void check_values(const Made& net, const Recorded& recorded, const Naming& names,
                  const Variable& x) {
  InFiles members(*net.link, names);
  for (auto& [name, member] : members.all) {
    if (!member.array.defined()) continue;
    Array values = testing::drawn_value(name, member.shape());
    member.array.assign((member.transposed ? values.T() : values).to(member.array.device()));
  }
  Variable loss;
  for (const auto& [stage, want] : below(recorded, "y,")) {
    Variable y = net.call(x, stage);
    ASSERT_EQ(y.shape(), want.shape()) << stage;
    Array got = y.array().to_cpu().astype(float64);
    double scale = std::max(1.0, xp::absolute(want).max().item<double>());
    EXPECT_LE(xp::absolute(got - want).max().item<double>(), 1e-4 * scale) << stage;
    Array gy = testing::drawn("gy," + stage, y.shape()).astype(float32).to(y.array().device());
    Variable part = F::sum(y * constant(gy));
    loss = loss.defined() ? loss + part : part;
  }
  net.link->cleargrads();
  loss.backward();
  // A rounding changes which of two places a pooling takes, and a gradient with it.
  for (const auto& [name, want] : below(recorded, "g/")) {
    InFiles::Member& member = members.all.at(name);
    ASSERT_TRUE(member.parameter.defined()) << name;
    double product = 0, norm = 0;
    if (member.parameter.grad().defined()) {
      Array g = member.parameter.grad().to_cpu().astype(float64);
      if (member.transposed) g = g.T();
      product = xp::sum(g * (testing::drawn(name, g.shape()) - 0.5)).item<double>();
      norm = std::sqrt(xp::sum(g * g).item<double>());
    }
    std::vector<double> wanted = want.to_vector<double>();
    EXPECT_NEAR(product, wanted[0], 1e-2 * wanted[1] + 1e-6) << name;
    EXPECT_NEAR(norm, wanted[1], 1e-2 * wanted[1] + 1e-6) << name;
  }
}

TEST_P(Networks, AreThePublishedOnes) {
  NetworkRow row = rows()[GetParam()];
  const Recorded& recorded = cases_.at(row.name);
  UsingConfig<bool> off(&Config::train, false);
  bool only_names = !recorded.count("x");
  for (Device device : testing::test_devices()) {
    if (only_names && !device.is_cpu()) continue;
    SCOPED_TRACE(std::string(row.name) + " on " + device.str());
    Made net = row.make();
    Variable x;
    if (!only_names) {
      net.link->to(device);
      Shape extents = shape_of(recorded.at("x"));
      bool images = extents.ndim() == 4;
      Array values = testing::drawn("x", extents);
      x = constant((images ? (values * 2.0 - 1.0).astype(float32) : (values * 11.0).astype(int32))
                       .to(device));
      no_backprop_mode names_alone;  // what waits for its shape gets it
      net.call(x, below(recorded, "y,").begin()->first);
    }
    std::map<std::string, Shape> want, got;
    for (const auto& [name, extents] : below(recorded, "shape/")) {
      if (!row.names.surplus || !row.names.surplus(name)) want.emplace(name, shape_of(extents));
    }
    for (const auto& [name, member] : InFiles(*net.link, row.names).all) {
      got.emplace(name, member.shape());
    }
    EXPECT_EQ(got, want);
    if (!only_names) check_values(net, recorded, row.names, x);
  }
}

TEST_F(Networks, AreThoseOfTheTable) {
  std::set<std::string> known, recorded;
  for (const NetworkRow& row : rows()) known.insert(row.name);
  for (const auto& [name, arrays] : cases_) recorded.insert(name);
  EXPECT_EQ(known, recorded);
}

INSTANTIATE_TEST_SUITE_P(Of, Networks, ::testing::Range(std::size_t{0}, rows().size()),
                         [](const auto& info) {
                           std::string name = rows()[info.param].name;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

TEST(StagedNetwork, CallsWhatIsAskedForAndWhatThatNeeds) {
  UsingConfig<bool> off(&Config::train, false);
  L::ResNetLayers net({1, 1, 1, 1}, false, narrow_resnet({}));
  Variable x(testing::drawn("x", {1, 3, 40, 40}).astype(float32));
  L::Activations y = net(x, {"res3", "fc6"});
  ASSERT_EQ(y.size(), 2u);
  EXPECT_EQ(y.at("res3").shape(), Shape({1, 4, 5, 5}));
  EXPECT_EQ(y.at("fc6").array().to_vector<float>(), net(x).array().to_vector<float>());
  EXPECT_EQ(net.available_layers().back(), "prob");
  EXPECT_EQ(net(x, {"prob", "prob"}).at("prob").shape(), Shape({1, 10}));
  int calls = 0;
  auto stage = [&](const char* name, const char* after = "") {
    return L::Stage{name, [&](const Variable& h) { return ++calls, h + 1.f; }, after};
  };
  std::vector<L::Stage> stages = {stage("a"), stage("b"), stage("prob"), stage("c", "a")};
  EXPECT_FLOAT_EQ(L::run_stages(stages, xp::zeros({}), {"c"}).at("c").array().item<float>(), 2);
  EXPECT_EQ(calls, 2);
  auto text = testing::thrown<ValueError>([&] { (void)net(x, {"conv9"}); });
  EXPECT_NE(text.find("\"conv9\" but [conv1, pool1, res2"), std::string::npos) << text;
}

TEST(StagedNetwork, CopiesAndErrors) {
  L::VGG16Layers net(narrow_vgg()), copy(net);
  EXPECT_NE(copy.fc[0].W.array().data(), net.fc[0].W.array().data());
  EXPECT_EQ(copy.count_params(), net.count_params());
  EXPECT_THROW(L::VGG16Layers({.image_size = 40}), ValueError);
  EXPECT_THROW(L::ResNetLayers({1, 2, 3}, true), ValueError);
  L::GPT2 gpt2({.vocab_size = 5, .n_positions = 3, .n_embd = 4, .n_layer = 1, .n_head = 1});
  EXPECT_THROW(gpt2(xp::zeros({1, 4}, int32)), ShapeError);
  EXPECT_THROW(gpt2(xp::zeros({4}, int32)), ShapeError);
}

}  // namespace
}  // namespace rensa

// What a model is: a value with names, devices, copies and an anchor.
#include "rensa/links/link.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <sstream>
#include <type_traits>

#include "rensa/array/random.h"
#include "rensa/core/error.h"
#include "rensa/fmt.h"
#include "rensa/format.h"
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
Values values(const Array& a) { return a.to_vector<float>(); }

struct Inner : Chain<Inner> {
  Parameter w{Initializer(1), {2}};
  Persistent mean{xp::zeros({2})};
  std::int64_t count = 0;
  void members(Visitor& v) override { v("w", w), v("mean", mean), v("count", count); }
};

struct Outer : Chain<Outer> {
  // Named against the alphabet, to see the sorting.
  L::Linear z{3};
  Inner a;
  Parameter scale{Initializer(2), {1}};
  Parameter absent;
  void members(Visitor& v) override { v("z", z), v("scale", scale), v("a", a), v("no", absent); }
};

std::vector<std::string> paths(Link& link) {
  std::vector<std::string> result;
  for (const NamedParameter& p : link.namedparams()) result.push_back(p.path);
  return result;
}

TEST(Link, NamesAreSortedParametersFirst) {
  Outer model;
  EXPECT_EQ(paths(model), (std::vector<std::string>{"/scale", "/a/w", "/z/W", "/z/b"}));
  std::vector<ParameterRef> params = model.params();
  ASSERT_EQ(params.size(), 4u);
  EXPECT_EQ(params[1].body(), model.a.w.body());
  std::vector<std::string> links;
  for (const auto& [path, link] : model.namedlinks()) links.push_back(path);
  EXPECT_EQ(links, (std::vector<std::string>{"/", "/a", "/z"}));
}

TEST(Link, NumbersAreSortedBeforeOtherNames) {
  struct Names : Chain<Names> {
    std::vector<std::string> names{"2", "b", "1a", "10", "9", "-"};
    std::vector<Parameter> all{6, Parameter(Initializer(1), {1})};
    void members(Visitor& v) override {
      for (std::size_t i = 0; i < names.size(); ++i) v(names[i], all[i]);
    }
  } model;
  EXPECT_EQ(paths(model), (std::vector<std::string>{"/2", "/9", "/10", "/-", "/1a", "/b"}));
}

TEST(Link, CountsInitializedParameters) {
  Outer model;
  EXPECT_EQ(model.count_params(), 1 + 2 + 3);
  model.z(xp::ones({1, 5}));
  EXPECT_EQ(model.count_params(), 1 + 2 + 3 + 15);
}

TEST(Link, Cleargrads) {
  Outer model;
  model.a.w.set_grad(xp::ones({2}));
  model.cleargrads();
  EXPECT_FALSE(model.a.w.grad().defined());
}

TEST(Link, DeepCopyIsIndependent) {
  Outer model;
  model.a.count = 7;
  Outer copy = model;
  copy.a.w.array().fill(9);
  copy.a.mean.fill(9);
  copy.a.count = 9;
  EXPECT_EQ(values(model.a.w.array()), (Values{1, 1}));
  EXPECT_EQ(values(model.a.mean), (Values{0, 0}));
  EXPECT_EQ(model.a.count, 7);
  copy.z(xp::ones({1, 5}));
  EXPECT_FALSE(model.z.W.is_initialized());
}

TEST(Link, CopyShares) {
  Outer model;
  Outer shared = model.copy();
  model.a.w.array().fill(9);
  EXPECT_EQ(values(shared.a.w.array()), (Values{9, 9}));
  EXPECT_EQ(shared.a.mean.storage(), model.a.mean.storage());
  shared.a.w.set_grad(xp::ones({2}));
  EXPECT_FALSE(model.a.w.grad().defined());
  Outer deep = model.copy(CopyMode::copy);
  EXPECT_NE(deep.a.w.array().storage(), model.a.w.array().storage());
  L::Linear linear(4, 4), fresh = linear.copy(CopyMode::init);
  EXPECT_FALSE(xp::array_equal(linear.W.array(), fresh.W.array()));
}

TEST(Link, MovesToADeviceInPlace) {
  for (Device device : testing::test_devices()) {
    Outer model;
    ParameterRef before = model.params()[1];
    model.to_device(device);
    EXPECT_EQ(before.array().device(), device);
    EXPECT_EQ(model.a.mean.device(), device);
    EXPECT_EQ(model.z.W.device(), device);
    EXPECT_EQ(model.z(xp::ones({2, 5}, float32, device)).device(), device);
  }
}

TEST(Link, SharedUntilMoved) {
  RENSA_NEEDS_GPUS(1);
  Outer model;
  Outer shared = model.copy();
  shared.to_gpu(0);
  EXPECT_EQ(model.a.w.array().device(), cpu());
  EXPECT_EQ(shared.a.w.array().device(), gpu(0));
}

TEST(Link, MovingGivesTheModelItself) {
  static_assert(std::is_same_v<decltype(std::declval<Outer&>().to_gpu()), Outer&>);
  static_assert(std::is_same_v<decltype(std::declval<Link&>().to_gpu()), Link&>);
  for (Device device : testing::test_devices()) {
    Outer model;
    Link& link = model;
    EXPECT_EQ(&model.to(device), &model);
    EXPECT_EQ(&model.to_device(device), &model);
    EXPECT_EQ(&link.to(device), &model);
    EXPECT_EQ(&model.a.w.to(device), &model.a.w);
    EXPECT_EQ(&model.to_cpu(), &model);
    EXPECT_EQ(model.a.w.device(), cpu());
    EXPECT_EQ(model.z.W.device(), cpu());
    if (device.is_cpu()) continue;
    EXPECT_EQ(&model.to_gpu(), &model);
    EXPECT_EQ(model.a.mean.device(), device);
    EXPECT_EQ(&model.to_gpu(0), &model);
  }
}

TEST(Link, ToGpuMeansTheCurrentOne) {
  EXPECT_EQ(current_gpu(), gpu(0));
  if (num_gpus() == 0) {
    Outer model;
    EXPECT_THROW(model.to_gpu(), DeviceError);
    EXPECT_THROW((void)Variable(xp::ones({2})).to_gpu(), DeviceError);
    EXPECT_THROW((void)xp::ones({2}).to_gpu(), DeviceError);
  }
  RENSA_NEEDS_GPUS(2);
  DeviceScope on(gpu(1));
  EXPECT_EQ(current_gpu(), gpu(1));
  Outer model;
  model.to_gpu();
  EXPECT_EQ(model.a.w.device(), gpu(1));
  Array host = xp::ones({2}, float32, cpu());
  EXPECT_EQ(host.to_gpu().device(), gpu(1));
  EXPECT_EQ(to_gpu(host).device(), gpu(1));
  EXPECT_EQ(Variable(host).to_gpu().device(), gpu(1));
  EXPECT_EQ(model.to_gpu(0).a.w.device(), gpu(0));
}

struct SameNames : Chain<SameNames> {
  L::Linear l1{2, 2}, l2{2, 2};
  void members(Visitor& v) override { v("l1", l1), v("l1", l2); }
  Variable operator()(const Variable& x) const { return l2(l1(x)).mean(); }
};
struct SameNameOfTwoKinds : Chain<SameNameOfTwoKinds> {
  L::Linear w{2, 2};
  std::int64_t count = 0;
  void members(Visitor& v) override { v("w", w), v("w", count); }
};
struct LinkTwice : Chain<LinkTwice> {
  L::Linear l1{2, 2};
  void members(Visitor& v) override { v("l1", l1), v("again", l1); }
};
struct ParameterTwice : Chain<ParameterTwice> {
  Parameter w{Initializer(1), {2}};
  void members(Visitor& v) override { v("w", w), v("b", w); }
};
struct Itself : Chain<Itself> {
  void members(Visitor& v) override { v("self", *this); }
};
template <class Model> struct Nested : Chain<Nested<Model>> {
  Model part;
  void members(Visitor& v) override { v("part", part); }
};

template <class Model> void refused(const std::string& text) {
  Nested<Model> model;
  optimizers::SGD optimizer;
  std::string path = ::testing::TempDir() + "rensa_named_twice.npz";
  EXPECT_THAT(testing::thrown<ValueError>([&] { optimizer.setup(model); }), HasSubstr(text));
  EXPECT_THAT(testing::thrown<ValueError>([&] { serializers::save_npz(path, model); }),
              HasSubstr(text));
  EXPECT_THAT(testing::thrown<ValueError>([&] { serializers::load_npz(path, model); }),
              HasSubstr(text));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Link, WhatIsNamedTwiceIsRefused) {
  refused<SameNames>("two members are named \"/part/l1\"");
  refused<SameNameOfTwoKinds>("two members are named \"/part/w\"");
  refused<LinkTwice>("the link \"/part/again\" is \"/part/l1\" again");
  refused<ParameterTwice>("the parameter \"/part/b\" is \"/part/w\" again");
  refused<Itself>("the link \"/part/self\" is \"/part\" again");
  Itself model;
  EXPECT_THAT(testing::thrown<ValueError>([&] { model.check_members(); }),
              HasSubstr("\"/self\" is the model itself"));
  Outer fine;
  EXPECT_NO_THROW(fine.check_members());
}

TEST(Link, AConstModelIsReadCalledCopiedAndSaved) {
  testing::TemporaryFolder folder;
  Outer original;
  (void)original.z(xp::ones({1, 5}));
  const Outer& model = original;
  EXPECT_EQ(model.count_params(), 1 + 2 + 3 + 15);
  EXPECT_EQ(model.params().size(), 4u);
  EXPECT_EQ(model.namedparams()[1].path, "/a/w");
  const Link* found = model.namedlinks()[1].second;
  EXPECT_EQ(found, &model.a);
  EXPECT_EQ(model.z(xp::ones({2, 5})).shape(), (Shape{2, 3}));
  EXPECT_EQ(model.anchor()->link, &original);
  EXPECT_FALSE(model.str().empty());
  serializers::save_npz(folder / "model.npz", model);
  Outer other = model.copy(CopyMode::copy), read;
  other.a.w.array().fill(8);
  other.copyparams(model);
  other.addgrads(model);
  EXPECT_EQ(values(other.a.w.array()), (Values{1, 1}));
  serializers::load_npz(folder / "model.npz", read);
  EXPECT_EQ(values(read.z.W.array()), values(model.z.W.array()));
}

TEST(Link, PrintsATable) {
  Outer model;
  std::ostringstream text;
  text << model;
  EXPECT_EQ(text.str(), model.str());
  EXPECT_EQ(model.str(),
            "Outer\n"
            "name                   shape            dtype    elements\n"
            "/z/W                   not initialized\n"
            "/z/b                   (3,)             float32         3\n"
            "/scale                 (1,)             float32         1\n"
            "/a/w                   (2,)             float32         2\n"
            "/a/mean (persistent)   (2,)             float32         2\n"
            "/a/count (persistent)  0                int64\n"
            "parameters on cpu                                       6");
  EXPECT_EQ(L::Classifier(L::Linear(2, 1)).type_name(), "Classifier<Linear>");
}

TEST(Link, AndWhatItIsMadeOfStandInFormatStrings) {
  Outer model;
  const Link& link = model;
  EXPECT_EQ(fmt::format("{}", model), model.str());
  EXPECT_EQ(fmt::format("{}", link), model.str());
  Variable y = model.a.w * 2;
  EXPECT_EQ(fmt::format("{}|{}|{}", model.z.W, model.a.w, y),
            model.z.W.str() + "|" + model.a.w.str() + "|" + y.str());
#ifdef __cpp_lib_format
  EXPECT_EQ(std::format("{}|{}", link, model.a.w), model.str() + "|" + model.a.w.str());
#endif
}

struct Labelled : Chain<Labelled> {
  void members(Visitor&) override {}
  Variable operator()(const Variable& x, const Variable&, const Variable&) const { return x; }
  Variable operator()(const Variable& x) { return x; }
};
struct Uncallable : Chain<Uncallable> {
  void members(Visitor&) override {}
};

TEST(Link, InvokeSaysWhatWasCalledWithWhat) {
  Labelled model;
  Uncallable other;
  Variable x(xp::ones({2, 3}));
  EXPECT_EQ(model.invoke({x}).body(), x.body());
  std::string text = testing::thrown<NotImplementedError>([&] { (void)model.invoke({x, x}); });
  EXPECT_THAT(text, HasSubstr("Labelled was called with 2 variables (cpu (2, 3) float32"));
  EXPECT_THAT(text, HasSubstr("takes 1 or 3"));
  EXPECT_THAT(text, HasSubstr("L::Classifier(model)"));
  EXPECT_EQ(std::as_const(model).invoke({x, x, x}).body(), x.body());
  text = testing::thrown<NotImplementedError>([&] { (void)std::as_const(model).invoke({x}); });
  EXPECT_THAT(text, HasSubstr("the model is const and its operator() is not"));
  text = testing::thrown<NotImplementedError>([&] { (void)other.invoke({x}); });
  EXPECT_THAT(text, HasSubstr("Uncallable was called with 1 variable (cpu (2, 3) float32"));
  EXPECT_THAT(text, HasSubstr("no operator()"));
}

TEST(Link, Addgrads) {
  for (Device device : testing::test_devices()) {
    Outer model, other;
    other.to_device(device);
    other.a.w.set_grad(xp::array({1.f, 2.f}, device));
    model.addgrads(other);
    EXPECT_EQ(values(model.a.w.grad()), (Values{1, 2}));
    model.addgrads(other);
    EXPECT_EQ(values(model.a.w.grad()), (Values{2, 4}));
    EXPECT_EQ(model.a.w.grad().device(), cpu());
    EXPECT_EQ(values(other.a.w.grad()), (Values{1, 2}));
  }
}

TEST(Link, Copyparams) {
  for (Device device : testing::test_devices()) {
    Outer model, other;
    model.to_device(device);
    other.z(xp::ones({1, 5}));
    other.a.w.array().fill(3);
    other.a.mean.fill(4);
    other.a.count = 5;
    StoragePtr memory = model.a.w.array().storage();
    model.copyparams(other);
    EXPECT_EQ(model.a.w.array().storage(), memory);
    EXPECT_EQ(values(model.a.w.array()), (Values{3, 3}));
    EXPECT_EQ(values(model.a.mean), (Values{4, 4}));
    EXPECT_EQ(model.a.count, 5);
    EXPECT_EQ(model.z.W.array().device(), device);
    EXPECT_EQ(values(model.z.W.array()), values(other.z.W.array()));
  }
}

/// What it keeps comes to be in calls.
struct Keeping : Chain<Keeping> {
  Array last;
  Persistent mean;
  std::optional<double> best;
  std::vector<double> history;
  xp::random::Generator noise = xp::random::default_rng(1, cpu());
  void members(Visitor& v) override {
    v("last", last), v("mean", mean), v("best", best), v("history", history), v("noise", noise);
  }
};

TEST(Link, CopyparamsCopiesWhatCameToBe) {
  for (Device device : testing::test_devices()) {
    Keeping model, other;
    model.to(device);
    other.last = xp::ones({2}, float32, cpu());
    other.mean = xp::ones({2}, float32, cpu());
    other.best = 3, other.history = {4, 5};
    (void)other.noise.random({3});
    model.copyparams(other, false);
    EXPECT_FALSE(model.last.defined());
    model.copyparams(other);
    other.last.fill(7);
    other.mean.fill(7);
    EXPECT_EQ(values(model.last), (Values{1, 1}));  // a copy
    EXPECT_EQ(values(model.mean), (Values{1, 1}));
    EXPECT_EQ(model.mean.device(), device);
    EXPECT_EQ(model.best, 3);
    EXPECT_EQ(model.history, other.history);
    EXPECT_EQ(model.noise.get_state(), other.noise.get_state());
    model.copy_persistents(Keeping());
    EXPECT_FALSE(model.last.defined() || model.mean.defined() || model.best);
    EXPECT_TRUE(model.history.empty());
  }
}

TEST(Link, CopyparamsInitializesTheSource) {
  Outer model, other;
  model.z(xp::ones({1, 5}));
  model.copyparams(other);
  EXPECT_TRUE(other.z.W.is_initialized());
  EXPECT_EQ(values(model.z.W.array()), values(other.z.W.array()));
}

TEST(Link, DifferentStructuresAreNamed) {
  Outer model;
  L::Linear other(3);
  try {
    model.copyparams(other);
    FAIL();
  } catch (const ValueError& e) {
    EXPECT_NE(std::string(e.what()).find("/W"), std::string::npos) << e.what();
  }
  EXPECT_THROW(model.addgrads(other), ValueError);
}

TEST(LinkAnchor, FollowsMovesAndKnowsTheEnd) {
  std::shared_ptr<LinkAnchor> anchor;
  {
    Outer model;
    anchor = model.anchor();
    EXPECT_EQ(anchor->link, &model);
    Outer moved = std::move(model);
    EXPECT_EQ(anchor->link, &moved);
    Outer copy = moved;
    EXPECT_EQ(anchor->link, &moved);
    EXPECT_EQ(copy.anchor()->link, &copy);
    std::vector<Outer> models;
    models.push_back(std::move(moved));
    models.emplace_back();  // the vector moves its elements
    EXPECT_EQ(anchor->link, &models[0]);
    auto other = models[1].anchor();
    models[0] = std::move(models[1]);
    EXPECT_EQ(anchor->link, nullptr);
    EXPECT_EQ(other->link, &models[0]);
    anchor = other;
  }
  EXPECT_EQ(anchor->link, nullptr);
}

TEST(Linear, SizesAndOptions) {
  L::Linear lazy(3), named_lazy(none, 3), eager(5, 3), nobias(5, 3, {.nobias = true});
  EXPECT_FALSE(lazy.W.is_initialized());
  EXPECT_FALSE(named_lazy.W.is_initialized());
  EXPECT_EQ(eager.W.shape(), (Shape{3, 5}));
  EXPECT_EQ(values(eager.b.array()), (Values{0, 0, 0}));
  EXPECT_FALSE(nobias.b.defined());
  EXPECT_EQ(nobias.params().size(), 1u);
  Variable y = lazy(xp::ones({2, 5, 4}));
  EXPECT_EQ(lazy.W.shape(), (Shape{3, 20}));
  EXPECT_EQ(y.shape(), (Shape{2, 3}));
  L::Linear batched(3);
  EXPECT_EQ(batched(xp::ones({2, 5, 4}), 2).shape(), (Shape{2, 5, 3}));
  EXPECT_EQ(batched.W.shape(), (Shape{3, 4}));
  L::Linear constant(2, 1, {.initialW = 3, .initial_bias = 0.5});
  EXPECT_EQ(values(constant(xp::ones({1, 2})).array()), (Values{6.5}));
  L::Linear given(2, 1, {.initialW = xp::array({{1.f, 2.f}})});
  EXPECT_EQ(values(given(xp::ones({1, 2})).array()), (Values{3}));
  EXPECT_THROW(L::Linear(-1), ValueError);
  EXPECT_THROW(eager(xp::ones({1, 6})), ShapeError);
}

}  // namespace
}  // namespace rensa

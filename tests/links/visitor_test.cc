// The one walk over what lasts: members of every kind, lists, tied parameters, files.
#include "rensa/links/visitor.h"

#include <gmock/gmock.h>

#include <complex>
#include <optional>

#include "rensa/array/random.h"
#include "rensa/array/zip.h"
#include "rensa/core/error.h"
#include "rensa/core/files.h"
#include "rensa/functions/functions.h"
#include "rensa/links/links.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/serializers/npz.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using Values = std::vector<float>;

struct Inner {
  std::int64_t n = 0;
  void members(Visitor& v) { v("n", n); }
};

/// A member of each kind.
struct Everything {
  std::int64_t int64_number = 0;
  int int_number = 0;
  std::size_t size = 0;
  double real = 0;
  float narrow = 0;
  bool flag = false;
  std::string text;
  Array array = xp::zeros({2}, float32, cpu());
  Counter counter;
  xp::random::Generator generator = xp::random::default_rng(1, cpu());
  std::optional<double> maybe, none = 1;
  std::unique_ptr<Link> child;
  AnyLink any = L::Linear(2, 1, {.initialW = 0});
  std::vector<L::Linear> layers;
  std::vector<std::int64_t> numbers;
  Parameter parameter{Initializer(0), {2}};
  Persistent persistent{xp::zeros({2}, float32, cpu())};
  Inner inner;
  Array sums;
  std::string parsed;

  Everything() {
    child = std::make_unique<L::Linear>(1, 1, L::LinearOptions{.initialW = 0});
    for (int i = 0; i < 2; ++i)
      layers.emplace_back(1, 1, L::LinearOptions{.nobias = true, .initialW = 0});
  }
  void fill() {
    int64_number = std::int64_t{1} << 60;
    int_number = -3, size = 4, real = 0.1, narrow = 0.25f, flag = true;
    text = "\u9023\u9396";
    array.fill(5);
    counter = 6;
    (void)generator.random({3});
    maybe = 7, none.reset();
    for (Link* link : {child.get(), &*any}) {
      for (const ParameterRef& p : link->params()) p.array().fill(8);
    }
    for (L::Linear& layer : layers) layer.W.array().fill(9);
    numbers = {10, 11};
    parameter.array().fill(12);
    persistent.fill(13);
    inner.n = 14;
    sums = xp::array({1.5, 2.5}, cpu());
    parsed = "[15]";
  }
  void members(Visitor& v) {
    v("int64", int64_number), v("int", int_number), v("size", size), v("real", real);
    v("narrow", narrow), v("flag", flag), v("text", text), v("array", array);
    v("counter", counter), v("generator", generator), v("maybe", maybe), v("child", child);
    v("none", none), v("any", any), v("layers", layers), v("numbers", numbers),
        v("parameter", parameter);
    v("persistent", persistent), v("inner", inner);
    v.computed(
        "sums", [this] { return sums.defined() ? sums : xp::zeros({0}, float64, cpu()); },
        [this](const Array& values) { sums = values; });
    v.computed(
        "parsed", [this] { return "text " + parsed; },
        [this](const std::string& t) { parsed = t.substr(5); });
  }
};

std::vector<std::string> names_in(const std::string& path) {
  FileReader file(path);
  return ZipReader(file).names();
}

TEST(Visitor, EveryKindOfMemberComesBackFromAFile) {
  TemporaryFolder folder;
  Everything source, target;
  source.fill();
  serializers::save_npz(folder / "a.npz", source);
  EXPECT_THAT(names_in(folder / "a.npz"),
              ElementsAre("any/W.npy", "any/b.npy", "array.npy", "child/W.npy", "child/b.npy",
                          "counter.npy", "flag.npy", "generator.npy", "inner/n.npy", "int.npy",
                          "int64.npy", "layers/0/W.npy", "layers/1/W.npy", "maybe.npy",
                          "narrow.npy", "none.npy", "numbers.npy", "parameter.npy", "parsed.npy",
                          "persistent.npy", "real.npy", "size.npy", "sums.npy", "text.npy"));
  Array memory = target.array;
  serializers::load_npz(folder / "a.npz", target);
  EXPECT_EQ(target.int64_number, std::int64_t{1} << 60);
  EXPECT_EQ(target.int_number, -3);
  EXPECT_EQ(target.size, 4u);
  EXPECT_EQ(target.real, 0.1);
  EXPECT_EQ(target.narrow, 0.25f);
  EXPECT_TRUE(target.flag);
  EXPECT_EQ(target.text, "\u9023\u9396");
  EXPECT_EQ(memory.to_vector<float>(), (Values{5, 5}));
  EXPECT_EQ(target.counter.value(), 6);
  EXPECT_EQ(target.generator.get_state(), source.generator.get_state());
  EXPECT_EQ(target.maybe, 7);
  EXPECT_FALSE(target.none);
  EXPECT_EQ(target.child->params()[0].array().to_vector<float>(), (Values{8}));
  EXPECT_EQ(target.any->params()[0].array().to_vector<float>(), (Values{8, 8}));
  EXPECT_EQ(target.layers[1].W.array().to_vector<float>(), (Values{9}));
  EXPECT_EQ(target.numbers, (std::vector<std::int64_t>{10, 11}));
  EXPECT_EQ(target.parameter.array().to_vector<float>(), (Values{12, 12}));
  EXPECT_EQ(target.persistent.to_vector<float>(), (Values{13, 13}));
  EXPECT_EQ(target.inner.n, 14);
  EXPECT_EQ(target.sums.to_vector<double>(), (std::vector<double>{1.5, 2.5}));
  EXPECT_EQ(target.parsed, "[15]");
}

TEST(Visitor, AFileThatDoesNotFitChangesNothing) {
  TemporaryFolder folder;
  struct Pair {
    std::int64_t n = 0;
    std::string text = "before";
    Array array = xp::zeros({2}, float32, cpu());
    bool done = false;
    void members(Visitor& v) {
      v("n", n), v("text", text), v("array", array);
      if (Visitor::Reading* file = v.reading()) file->then([this] { done = true; });
    }
  } source, target;
  source.n = 1, source.text = "after", source.array = xp::ones({3}, float32, cpu());
  serializers::save_npz(folder / "a.npz", source);
  EXPECT_THROW(serializers::load_npz(folder / "a.npz", target), ShapeError);
  EXPECT_EQ(target.n, 0);
  EXPECT_EQ(target.text, "before");
  EXPECT_FALSE(target.done);
  source.array = target.array;
  serializers::save_npz(folder / "a.npz", source);
  serializers::load_npz(folder / "a.npz", target);
  EXPECT_EQ(target.n, 1);
  EXPECT_EQ(target.text, "after");
  EXPECT_TRUE(target.done);
}

TEST(Visitor, OptionalMembersMayBeMissing) {
  TemporaryFolder folder;
  std::int64_t a = 1, b = 2;
  Inner c{3};
  auto old_version = [&](Visitor& v) { v("a", a); };
  auto new_version = [&](Visitor& v) { v("a", a), v.optional("b", b), v.optional("c", c); };
  serializers::save_npz(folder / "old.npz", old_version);
  serializers::save_npz(folder / "new.npz", new_version);
  a = b = c.n = 0;
  serializers::load_npz(folder / "old.npz", new_version);
  EXPECT_EQ(a + b + c.n, 1);
  serializers::load_npz(folder / "new.npz", new_version);
  EXPECT_EQ(b, 2);
  EXPECT_EQ(c.n, 3);
  EXPECT_THROW(serializers::load_npz(folder / "new.npz", old_version), SerializationError);
}

TEST(Visitor, ATextIsNoNumberAndANumberNoText) {
  TemporaryFolder folder;
  std::string text = "5";
  std::int64_t number = 5;
  auto as_text = [&](Visitor& v) { v("x", text); };
  auto as_number = [&](Visitor& v) { v("x", number); };
  serializers::save_npz(folder / "text.npz", as_text);
  serializers::save_npz(folder / "number.npz", as_number);
  EXPECT_THROW(serializers::load_npz(folder / "text.npz", as_number), SerializationError);
  EXPECT_THROW(serializers::load_npz(folder / "number.npz", as_text), SerializationError);
}

struct List : Chain<List> {
  std::vector<L::Linear> layers;
  std::optional<L::Linear> head;
  explicit List(int n) {
    for (int i = 0; i < n; ++i) layers.emplace_back(1, 1, L::LinearOptions{.nobias = true});
  }
  void members(Visitor& v) override { v("layers", layers), v("head", head); }
  Variable operator()(Variable x) const {
    for (const L::Linear& layer : layers) x = layer(x);
    return head ? (*head)(x) : x;
  }
};

TEST(Visitor, AListOfLinksIsPartOfItsModel) {
  for (Device device : testing::test_devices()) {
    List model(11);
    std::vector<NamedParameter> params = model.namedparams();
    ASSERT_EQ(params.size(), 11u);
    for (std::size_t i = 0; i < 11; ++i) {  // 2 comes before 10
      EXPECT_EQ(params[i].path, "/layers/" + std::to_string(i) + "/W");
      EXPECT_EQ(params[i].parameter.body(), model.layers[i].W.body());
      EXPECT_EQ(model.params()[i].body(), model.layers[i].W.body());
    }
    EXPECT_EQ(model.namedlinks()[3].first, "/layers/2");
    EXPECT_EQ(model.namedlinks()[3].second, &model.layers[2]);
    model.head.emplace(1, 1);
    EXPECT_EQ(model.params().size(), 13u);
    model.to(device);
    EXPECT_EQ(model.layers[10].W.device(), device);
    EXPECT_EQ(model.head->W.device(), device);
    List copy = model;
    copy.layers[0].W.array().fill(0);
    copy.copyparams(model);
    EXPECT_TRUE(xp::array_equal(copy.layers[0].W.array(), model.layers[0].W.array()));
    optimizers::SGD optimizer(1);
    optimizer.setup(model);
    Variable x(xp::ones({1, 1}, float32, device));
    optimizer.update([&] { return model(x).sum(); });
    EXPECT_FALSE(xp::array_equal(copy.layers[10].W.array(), model.layers[10].W.array()));
    model.cleargrads();
    EXPECT_FALSE(model.head->W.grad().defined());
  }
}

/// A language model in small: what goes in and what comes out share a matrix.
struct Tied : Chain<Tied> {
  L::Linear embed{2, 2, {.nobias = true, .initialW = 2}},
      out{2, 2, {.nobias = true, .initialW = 3}};
  void members(Visitor& v) override { v.tied(out.W, embed.W), v("out", out), v("embed", embed); }
  Variable operator()(const Variable& x) const { return out(embed(x)); }
};

TEST(Visitor, ATiedParameterIsOne) {
  TemporaryFolder folder;
  for (Device device : testing::test_devices()) {
    Tied model;
    optimizers::SGD optimizer(0.125);
    optimizer.setup(model);
    model.to(device);
    ASSERT_EQ(model.params().size(), 1u);
    EXPECT_EQ(model.namedparams()[0].path, "/embed/W");
    EXPECT_EQ(model.count_params(), 4);
    EXPECT_EQ(model.out.W.body(), model.embed.W.body());
    serializers::save_npz(folder / "a.npz", model);
    EXPECT_THAT(names_in(folder / "a.npz"), ElementsAre("embed/W.npy"));

    // Of sum(W W x) for x = 1 and W = 2, both uses: 8 + 8.
    Variable x(xp::ones({1, 2}, float32, device));
    optimizer.update([&] { return model(x).sum(); });
    EXPECT_EQ(model.out.W.array().to_vector<float>(), Values(4, 2 - 0.125f * 16 / 2));

    Tied read;
    serializers::load_npz(folder / "a.npz", read);
    EXPECT_EQ(read.out.W.array().to_vector<float>(), Values(4, 2));
  }
}

TEST(Visitor, ACopyIsTiedToItself) {
  Tied model;
  model.check_members();
  Tied plain = model, shared = model.copy(), deep = model.copy(CopyMode::copy);
  std::unique_ptr<Link> clone = model.clone();
  EXPECT_EQ(deep.out.W.body(), deep.embed.W.body());
  EXPECT_EQ(shared.out.W.body(), shared.embed.W.body());
  EXPECT_NE(deep.embed.W.body(), model.embed.W.body());
  EXPECT_EQ(static_cast<Tied&>(*clone).out.W.body(), static_cast<Tied&>(*clone).embed.W.body());
  EXPECT_EQ(plain.params().size(), 1u);  // a walk ties it
  EXPECT_EQ(plain.out.W.body(), plain.embed.W.body());
  EXPECT_NE(plain.embed.W.body(), model.embed.W.body());
  EXPECT_EQ(plain.out.W.array().to_vector<float>(), Values(4, 2));
}

/// A link that leaves the model with the tie has its parameter as any other.
TEST(Visitor, ATieIsItsModels) {
  TemporaryFolder folder;
  for (Device device : testing::test_devices()) {
    Tied model;
    optimizers::SGD(1).setup(model);
    Sequential list(model.out, F::relu);
    L::Linear copied = model.out, shared = model.out.copy(), moved = std::move(Tied(model).out);
    for (Link* head : std::initializer_list<Link*>{&copied, &shared, &moved, &list}) {
      ASSERT_EQ(head->params().size(), 1u);
      head->check_members();
      head->to(device);
      EXPECT_EQ(head->params()[0].device(), device);
      serializers::save_npz(folder / "head.npz", *head);
      EXPECT_EQ(names_in(folder / "head.npz").size(), 1u);
      optimizers::SGD optimizer(0.5);
      optimizer.setup(*head);
      Variable x(xp::ones({1, 2}, float32, device));
      optimizer.update([&] { return head->invoke({x}).sum(); });
      EXPECT_EQ(head->params()[0].array().to_vector<float>(), Values(4, 1.5));
      head->cleargrads();
      EXPECT_FALSE(head->params()[0].grad().defined());
    }
  }
}

TEST(Visitor, ATieMayCease) {
  struct Sometimes : Chain<Sometimes> {
    bool share = true;
    L::Linear embed{2, 2, {.nobias = true}}, out{2, 2, {.nobias = true}};
    void members(Visitor& v) override {
      if (share) v.tied(out.W, embed.W);
      v("out", out), v("embed", embed);
    }
  } model;
  EXPECT_EQ(model.params().size(), 1u);
  model.share = false;
  EXPECT_THAT(testing::thrown<ValueError>([&] { model.check_members(); }),
              HasSubstr("\"/embed/W\" is \"/out/W\" again"));
  model.out = L::Linear(2, 2, {.nobias = true});
  EXPECT_EQ(model.params().size(), 2u);
  model.check_members();
}

TEST(Visitor, TiesThatAreNoneAreRefused) {
  struct TooLate : Chain<TooLate> {
    L::Linear a{2, 2}, b{2, 2};
    void members(Visitor& v) override { v("a", a), v("b", b), v.tied(b.W, a.W); }
  } too_late;
  for (int walk = 0; walk < 2; ++walk) {
    EXPECT_THAT(testing::thrown<ValueError>([&] { too_late.check_members(); }),
                HasSubstr("\"/b/W\" is tied after it was shown"));
  }
  struct ToNothing : Chain<ToNothing> {
    L::Linear a{2, 2}, b{2, 2};
    void members(Visitor& v) override { v.tied(b.W, a.W), v("b", b); }
  } to_nothing;
  EXPECT_THAT(testing::thrown<ValueError>([&] { to_nothing.check_members(); }),
              HasSubstr("\"W\" is tied to one that nothing shows"));
  L::Linear a(2, 2), b(2, 2), c(2, 2, {.nobias = true}), wide(3, 2);
  Parameter half(Initializer(xp::zeros({2, 2}, float16, cpu())));
  Visitor v;
  EXPECT_THAT(testing::thrown<ValueError>([&] { v.tied(a.W, a.W); }), HasSubstr("itself"));
  EXPECT_THAT(testing::thrown<ValueError>([&] { v.tied(a.b, c.b); }), HasSubstr("undefined"));
  EXPECT_THAT(testing::thrown<ShapeError>([&] { v.tied(wide.W, a.W); }), HasSubstr("(2, 3)"));
  EXPECT_THAT(testing::thrown<DtypeError>([&] { v.tied(half, a.W); }), HasSubstr("float16"));
  v.tied(b.W, a.W);
  EXPECT_THAT(testing::thrown<ValueError>([&] { v.tied(c.W, b.W); }), HasSubstr("to a third"));
}

struct Noisy : Chain<Noisy> {
  xp::random::Generator noise = xp::random::default_rng(5, cpu());
  Persistent seen;
  void members(Visitor& v) override { v("noise", noise), v("seen", seen); }
};

TEST(Visitor, ACopyDrawsNumbersOfItsOwn) {
  for (Device device : testing::test_devices()) {
    Noisy model;
    (void)model.noise.random({3});
    Noisy copy = model.copy();
    std::unique_ptr<Link> clone = model.clone();
    copy.to(device);
    EXPECT_EQ(copy.noise.device(), device);
    Array expected = model.noise.random({8});
    EXPECT_TRUE(xp::array_equal(copy.noise.random({8}).to(cpu()), expected));
    EXPECT_TRUE(xp::array_equal(static_cast<Noisy&>(*clone).noise.random({8}), expected));
  }
}

TEST(Visitor, NamesAndValuesGivenTwiceAreRefused) {
  Inner inner;
  std::vector<L::Linear> list;
  auto refused = [](auto members) {
    return testing::thrown<ValueError>([&] { check_members(members); });
  };
  EXPECT_THAT(refused([&](Visitor& v) { v("x", inner), v("x", list); }), HasSubstr("\"/x\""));
  EXPECT_THAT(refused([&](Visitor& v) { v("x", inner.n), v("x", inner); }), HasSubstr("\"/x\""));
  EXPECT_THAT(refused([&](Visitor& v) { v("x", inner.n), v("y", inner); }),
              HasSubstr("the value \"/y/n\" is \"/x\" again"));
  check_members(inner);  // whose first member stands where it does
}

/// What a run comes to have: none, or less of it, at the start.
struct Gathered {
  std::optional<double> best;
  std::optional<std::string> text;
  std::optional<std::vector<int>> list;
  std::vector<double> history;
  std::vector<bool> flags;
  Array last;
  void members(Visitor& v) {
    v("best", best), v("text", text), v("list", list), v("history", history);
    v("flags", flags), v("last", last);
  }
};

TEST(Visitor, WhatGrowsComesBack) {
  TemporaryFolder folder;
  Gathered full, empty, read;
  full.best = 0.5, full.text = "five", full.list = {1, 2}, full.history = {1, 2.5};
  full.flags = {true, false, true};
  full.last = xp::array({std::complex<double>(1, 2)}, cpu());
  serializers::save_npz(folder / "full.npz", full);
  serializers::save_npz(folder / "empty.npz", empty);
  serializers::load_npz(folder / "full.npz", read);
  EXPECT_EQ(read.best, 0.5);
  EXPECT_EQ(read.text, "five");
  EXPECT_EQ(read.list, (std::vector<int>{1, 2}));
  EXPECT_EQ(read.history, full.history);
  EXPECT_EQ(read.flags, full.flags);
  EXPECT_TRUE(xp::array_equal(read.last, full.last));
  serializers::load_npz(folder / "empty.npz", read);
  EXPECT_FALSE(read.best || read.text || read.list || read.last.defined());
  EXPECT_TRUE(read.history.empty() && read.flags.empty());
}

TEST(Visitor, ANumberTooLargeForItsMemberIsRefused) {
  TemporaryFolder folder;
  std::int64_t large = std::int64_t{1} << 40;
  double far = 1e300;
  std::vector<std::int64_t> list = {1, large};
  struct Narrow {
    int n = 1;
    float x = 2;
    std::vector<std::uint8_t> list = {3};
    std::size_t size = 0;
  } narrow;
  auto read = [&](auto&& wide, auto&& member) {
    serializers::save_npz(folder / "a.npz", [&](Visitor& v) { v("a", wide); });
    return testing::thrown<SerializationError>(
        [&] { serializers::load_npz(folder / "a.npz", [&](Visitor& v) { v("a", member); }); });
  };
  EXPECT_THAT(read(large, narrow.n), HasSubstr("a: the number 1099511627776 does not fit"));
  EXPECT_THAT(read(far, narrow.x), HasSubstr("does not fit"));
  EXPECT_THAT(read(list, narrow.list), HasSubstr("1099511627776"));
  EXPECT_EQ(narrow.n, 1);
  EXPECT_EQ(narrow.x, 2);
  EXPECT_EQ(narrow.list, (std::vector<std::uint8_t>{3}));
  std::size_t size = ~std::size_t{0};
  serializers::save_npz(folder / "a.npz", [&](Visitor& v) { v("a", size); });
  serializers::load_npz(folder / "a.npz", [&](Visitor& v) { v("a", narrow.size); });
  EXPECT_EQ(narrow.size, size);
}

/// As a class of another language would be: no template, and members of its own.
struct Plain : Link {
  Parameter w{Initializer(2), {1}};
  Device moved_to;
  int resets = 0;
  void members(Visitor& v) override { v("w", w); }
  Variable invoke(const Variables& x) const override { return x[0] * w; }
  std::unique_ptr<Link> clone() const override { return std::make_unique<Plain>(*this); }
  std::string type_name() const override { return "python.Plain"; }
  void move_to(Device device) override {
    moved_to = device;
    Link::move_to(device);
  }
  void reset_state() override { ++resets; }
};

TEST(Link, WithoutTheTemplate) {
  for (Device device : testing::test_devices()) {
    ChainList list{Plain(), L::Linear(1, 1)};
    Sequential model(std::move(list[0]), list[1]);
    model.to(device);
    model.reset_state();
    auto& plain = model[0].as<Plain>();
    EXPECT_EQ(plain.moved_to, device);
    EXPECT_EQ(plain.resets, 1);
    EXPECT_EQ(plain.w.device(), device);
    EXPECT_EQ(model.describe(), "Sequential(python.Plain, Linear)");
    Sequential copy = model;
    EXPECT_NE(copy[0].as<Plain>().w.body(), plain.w.body());
    optimizers::SGD optimizer(0.5);
    optimizer.setup(plain);
    Link& link = plain;
    Variable x(xp::ones({1}, float32, device));
    optimizer.update([&] { return link.invoke({x}).sum(); });
    EXPECT_EQ(plain.w.array().to_vector<float>(), (Values{1.5}));
    EXPECT_EQ(copy[0].as<Plain>().w.array().to_vector<float>(), (Values{2}));
  }
}

}  // namespace
}  // namespace rensa

// Shifts against Chainer's formulas, and in runs that go on; values that are observed.
#include "rensa/training/extensions/shift.h"

#include <gmock/gmock.h>

#include <cmath>

#include "rensa/core/error.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/serializers/npz.h"
#include "rensa/training/training.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"
#include "tests/training/models.h"

namespace rensa::training {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

class ShiftTest : public ::testing::Test {
 protected:
  Trainer make_trainer(Trigger stop, bool capture = false) {
    optimizer_ = optimizers::SGD(0.5);
    optimizer_.setup(model_);
    iterators::SerialIterator iterator(testing::line_data(4), 2, {.shuffle = false});
    return Trainer(StandardUpdater(iterator, optimizer_,
                                   {.capture = capture, .capture_options = {.replay_lists = true}}),
                   std::move(stop), folder_ / "out");
  }
  /// The learning rate with which each of the iterations was made.
  template <class S> std::vector<double> rates(const S& shift, int iterations) {
    std::vector<double> found;
    Trainer trainer = make_trainer({iterations, "iteration"});
    trainer.extend(shift);
    trainer.extend(noting(&found));
    trainer.run();
    return found;
  }
  /// Notes the rate of the iteration that was just made, before a shift changes it.
  struct Note final : Extension {
    explicit Note(std::vector<double>* f) : found(f) {}
    void operator()(Trainer& t) override {
      found->push_back(t.updater().optimizer().attribute("lr"));
    }
    int default_priority() const override { return kPriorityWriter + 1; }
    std::vector<double>* found;
  };
  static Note noting(std::vector<double>* found) { return Note(found); }

  testing::Line model_;
  optimizers::SGD optimizer_{0.5};
  testing::TemporaryFolder folder_;
};

TEST_F(ShiftTest, Formulas) {
  using namespace extensions;
  struct Case {
    std::vector<double> found, expected;
  };
  const std::vector<Case> cases = {
      {rates(ExponentialShift("lr", 0.5), 4), {0.5, 0.25, 0.125, 0.0625}},
      {rates(ExponentialShift("lr", 0.5, {.init = 1, .target = 0.2}), 4), {1, 0.5, 0.25, 0.2}},
      {rates(ExponentialShift("lr", 2, {.init = -1, .target = -3}), 4), {-1, -2, -3, -3}},
      {rates(LinearShift("lr", {1, 3}, {1, 5}), 7), {1, 1, 1.5, 2, 2.5, 3, 3}},
      {rates(CosineShift("lr", {3, 1}, {1, 5}), 8),
       {0.5, 3, 2 + std::sqrt(0.5), 2, 2 - std::sqrt(0.5), 1, 1, 1}},
      {rates(StepShift("lr", 0.1, 2), 5), {0.5, 0.5, 0.05, 0.05, 0.005}},
      {rates(MultistepShift("lr", 0.1, {1, 3}, {.init = 1}), 5), {1, 0.1, 0.1, 0.01, 0.01}},
      {rates(WarmupShift("lr", 0.1, 2, 0.3), 5), {0.1, 0.2, 0.3, 0.3, 0.3}},
      {rates(InverseShift("lr", 1, 2), 3), {0.5, 0.5 / 4, 0.5 / 9}},
      {rates(InverseShift("lr", 1, -1, {.target = 1}), 4), {0.5, 1, 1, 1}},
      {rates(PolynomialShift("lr", 2, 4), 6), {0.5, 0.28125, 0.125, 0.03125, 0, 0}},
      {rates(PolynomialShift("lr", 1, 4, {.target = 0.2}), 5), {0.5, 0.375, 0.25, 0.2, 0.2}},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_THAT(cases[i].found, Pointwise(DoubleNear(1e-15), cases[i].expected)) << "case " << i;
  }
}

TEST_F(ShiftTest, ByEpochsAndOfAnotherOptimizer) {
  std::vector<double> found;
  Trainer trainer = make_trainer({6, "iteration"});
  testing::Line other;
  optimizers::Adam adam(1);
  adam.setup(other);
  trainer.extend(extensions::ExponentialShift("lr", 0.5), {.trigger = {1, "epoch"}});
  trainer.extend(extensions::ExponentialShift("alpha", 0.5, {.optimizer = adam}));
  trainer.extend(noting(&found));
  trainer.run();
  EXPECT_THAT(found, ElementsAre(0.5, 0.5, 0.25, 0.25, 0.125, 0.125));
  EXPECT_EQ(adam.attribute("alpha"), std::pow(0.5, 6));
}

TEST_F(ShiftTest, GoesOnFromAFile) {
  using namespace extensions;
  const std::vector<std::pair<const char*, std::function<void(Trainer&)>>> all = {
      {"exponential", [](Trainer& t) { t.extend(ExponentialShift("lr", 0.5)); }},
      {"linear",
       [](Trainer& t) {
         t.extend(LinearShift("lr", {1, 3}, {1, 5}));
       }},
      {"warmup, then a cosine",
       [](Trainer& t) {
         t.extend(WarmupShift("lr", 0.1, 2, 0.5));
         t.extend(CosineShift("lr", {0.5, 0.1}, {2, 6}));
       }},
      {"warmup, then steps",
       [](Trainer& t) {
         t.extend(WarmupShift("lr", 0.1, 2, 0.5));
         t.extend(MultistepShift("lr", 0.1, {4}),
                  {.trigger = triggers::ManualScheduleTrigger({1, 2, 3, 4}, "epoch")});
       }},
  };
  const std::vector<std::pair<const char*, std::function<void(Trainer&)>>> by_name = {
      {"warmup of an optimizer that is named",
       [this](Trainer& t) { t.extend(WarmupShift("lr", 0.1, 2, 0.3, optimizer_)); }},
      {"steps of an optimizer that is named",
       [this](Trainer& t) { t.extend(StepShift("lr", 0.5, 2, {.optimizer = optimizer_})); }},
  };
  std::vector<std::pair<const char*, std::function<void(Trainer&)>>> both = all;
  both.insert(both.end(), by_name.begin(), by_name.end());
  for (const auto& [name, extend] : both) {
    for (int cut : {1, 3, 5}) {
      std::vector<double> whole, parts;
      auto run = [&](std::vector<double>& found, int end, bool resumed) {
        Trainer trainer = make_trainer({end, "iteration"});
        extend(trainer);
        trainer.extend(noting(&found), {.name = "note"});
        trainer.extend(
            [&](Trainer& t) {
              if (t.updater().iteration() == cut) serializers::save_npz(folder_ / "cut.npz", t);
            },
            {.name = "saved", .priority = -1});
        if (resumed) serializers::load_npz(folder_ / "cut.npz", trainer);
        trainer.run();
      };
      run(whole, 8, false), run(parts, cut, false), run(parts, 8, true);
      EXPECT_EQ(parts, whole) << name << " cut after " << cut;
    }
  }
}

/// What Chainer saves of an extension: a struct in its place, under its name.
struct OfChainer final : Extension {
  std::int64_t t = 0, current_step = -1;
  void operator()(Trainer&) override {}
  void members(Visitor& v) override {
    v("_t", t);
    if (current_step >= 0) v("_current_step", current_step);
  }
};

TEST_F(ShiftTest, GoesOnFromChainersFiles) {
  auto rate_after = [&](auto shift, const char* name, OfChainer saved) {
    Trainer theirs = make_trainer({1, "iteration"});
    theirs.extend(saved, {.name = name});
    serializers::save_npz(folder_ / "theirs.npz", theirs);
    Trainer ours = make_trainer({1, "iteration"});
    std::vector<double> found;
    ours.extend(shift), ours.extend(noting(&found), {.name = "note"});
    serializers::load_npz(folder_ / "theirs.npz", ours, {.strict = false});
    ours.run();
    return found.at(0);
  };
  OfChainer steps, warm;
  steps.t = 3, steps.current_step = 1, warm.t = 9;
  EXPECT_EQ(rate_after(extensions::MultistepShift("lr", 0.1, {2, 5}, {.init = 1}), "MultistepShift",
                       steps),
            0.1);
  EXPECT_EQ(rate_after(extensions::WarmupShift("lr", 0.1, 2, 0.3), "WarmupShift", warm), 0.3);
}

TEST_F(ShiftTest, CapturedStepsFollow) {
  std::vector<double> weights[2];
  for (bool capture : {false, true}) {
    model_.w.array().fill(0);
    Trainer trainer = make_trainer({8, "iteration"}, capture);
    trainer.extend(extensions::ExponentialShift("lr", 0.9, {.init = 0.01}));
    trainer.extend([&](Trainer&) { weights[capture].push_back(model_.w.item<double>()); });
    trainer.run();
  }
  EXPECT_EQ(weights[0], weights[1]);
  EXPECT_NE(weights[0][6], weights[0][7]);
}

TEST_F(ShiftTest, BadArguments) {
  using namespace extensions;
  EXPECT_THROW(ExponentialShift("lr", -1), ValueError);
  EXPECT_THROW(CosineShift("lr", {1, 0}, {3, 3}), ValueError);
  EXPECT_THROW(StepShift("lr", 0.1, 0), ValueError);
  EXPECT_THROW(MultistepShift("lr", 0.1, {3, 3}), ValueError);
  EXPECT_THROW(WarmupShift("lr", 0.1, 0, 1), ValueError);
  EXPECT_THROW(InverseShift("lr", -1, 1), ValueError);
  EXPECT_THROW(PolynomialShift("lr", 1, 0), ValueError);
  Trainer trainer = make_trainer({1, "iteration"});
  trainer.extend(ExponentialShift("beta1", 0.5));
  EXPECT_THAT(testing::thrown<ValueError>([&] { trainer.run(); }), HasSubstr("beta1"));
}

TEST_F(ShiftTest, ObservedValues) {
  Trainer trainer = make_trainer({4, "iteration"});
  trainer.extend(extensions::observe_lr());
  trainer.extend(
      extensions::observe_value(
          "twice", [](Trainer& t) { return 2. * static_cast<double>(t.updater().iteration()); }),
      {.trigger = {1, "iteration"}});
  trainer.extend(extensions::LogReport({.keys = {"lr", "twice"}}));
  trainer.run();
  const auto& log = static_cast<extensions::LogReport&>(trainer.get_extension("LogReport")).log();
  ASSERT_EQ(log.size(), 2U);
  EXPECT_EQ(log[1].values.at("lr"), 0.5);
  EXPECT_EQ(log[1].values.at("twice"), 7);

  testing::Line other;
  optimizers::Adam adam(0.25);
  adam.setup(other);
  iterators::SerialIterator iterator(testing::line_data(4), 4, {.shuffle = false});
  Trainer by_adam(StandardUpdater(iterator, adam), {1, "iteration"}, folder_ / "out");
  double rate = 0;
  by_adam.extend(extensions::observe_lr("main", "rate"));
  by_adam.extend([&](Trainer& t) { rate = t.observation().at("rate").item<double>(); });
  by_adam.run();
  EXPECT_NEAR(rate, 0.25 * std::sqrt(1 - 0.999) / (1 - 0.9), 1e-9);  // of the first update
}

TEST_F(ShiftTest, MicroAverage) {
  std::vector<double> found;
  Trainer trainer = make_trainer({4, "iteration"});
  trainer.extend(
      [](Trainer& t) {
        auto i = static_cast<double>(t.updater().iteration());
        t.observation()["right"] = xp::array(i, cpu()),
        t.observation()["of"] = xp::array(2 * i + 1, cpu());
      },
      {.priority = kPriorityWriter});
  trainer.extend(extensions::MicroAverage("right", "of", "accuracy"));
  trainer.extend([&](Trainer& t) {
    if (t.observation().count("accuracy") != 0)
      found.push_back(t.observation()["accuracy"].item<double>());
  });
  trainer.run();
  EXPECT_THAT(found, ElementsAre(3. / 8, 7. / 16));
}

TEST_F(ShiftTest, FailOnNonNumber) {
  auto text_of = [&](float value) {
    model_.w.array().fill(0);
    Trainer trainer = make_trainer({9, "iteration"});
    trainer.extend(extensions::FailOnNonNumber());
    trainer.extend(
        [&](Trainer& t) {
          if (t.updater().iteration() == 3) model_.w.array().fill(value);
        },
        {.priority = kPriorityWriter});
    return testing::thrown<ValueError>([&] { trainer.run(); });
  };
  EXPECT_THAT(text_of(INFINITY),
              AllOf(HasSubstr("after iteration 3 the parameter /w"),
                    HasSubstr("has 0 values that are NaN and 1 that are infinite"),
                    Not(HasSubstr("debug"))));
  EXPECT_THAT(text_of(NAN), AllOf(HasSubstr("has 1 values that are NaN and 0 that are infinite"),
                                  HasSubstr("config().debug")));
}

TEST_F(ShiftTest, ParameterStatistics) {
  L::Linear net(2, 4);
  net.W.array().assign(xp::arange(8).reshape({4, 2}).astype(float32));
  net.cleargrads();
  Trainer trainer = make_trainer({2, "iteration"});
  trainer.extend(extensions::ParameterStatistics(net, {.prefix = "net"}));
  Observation found;
  trainer.extend([&](Trainer& t) { found = t.observation(); });
  trainer.run();
  auto value = [&](const char* key) { return found.at(key).item<double>(); };
  EXPECT_EQ(value("net/W/data/mean"), 3.5);
  EXPECT_EQ(value("net/W/data/min"), 0);
  EXPECT_EQ(value("net/W/data/max"), 7);
  EXPECT_EQ(value("net/W/data/zeros"), 1);
  EXPECT_NEAR(value("net/W/data/std"), std::sqrt(5.25), 1e-6);
  EXPECT_EQ(value("net/W/data/percentile/3"), 3.5);
  EXPECT_EQ(value("net/b/data/zeros"), 4);
  EXPECT_EQ(found.count("net/W/grad/mean"), 0U);
}

}  // namespace
}  // namespace rensa::training

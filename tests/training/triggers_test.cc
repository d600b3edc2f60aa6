// Triggers by values, lists of times, the clock: when they fire, and in a run that goes on.
#include "rensa/training/triggers/triggers.h"

#include <gmock/gmock.h>

#include <thread>

#include "rensa/core/error.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/serializers/npz.h"
#include "rensa/training/training.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"
#include "tests/training/models.h"

namespace rensa::training {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Runs of 4 examples in batches of 2, in which "value" is observed as a list says, iteration for
/// iteration.
class TriggersTest : public ::testing::Test {
 protected:
  TriggersTest() { optimizer_.setup(model_); }

  Trainer make_trainer(Trigger stop, std::vector<double> values) {
    iterators::SerialIterator iterator(testing::line_data(4), 2, {.shuffle = false});
    Trainer trainer(StandardUpdater(iterator, optimizer_), std::move(stop), folder_ / "out");
    trainer.extend(
        [values](Trainer& t) {
          double value = values.at(static_cast<std::size_t>(t.updater().iteration() - 1));
          t.observation()["value"] = xp::array(value, cpu());
        },
        {.priority = kPriorityWriter});
    return trainer;
  }
  /// The iterations at which `trigger` fires.
  std::vector<std::int64_t> fires(Trigger trigger, const std::vector<double>& values) {
    std::vector<std::int64_t> at;
    Trainer trainer = make_trainer({values.size(), "iteration"}, values);
    trainer.extend([&](Trainer& t) { at.push_back(t.updater().iteration()); },
                   {.trigger = std::move(trigger)});
    trainer.run();
    return at;
  }

  testing::Line model_;
  optimizers::SGD optimizer_{0};
  testing::TemporaryFolder folder_;
};

TEST_F(TriggersTest, TheBestValueOfEachInterval) {
  // The means over epochs are 2, 1, 3, 3.
  const std::vector<double> values = {3, 1, 1, 1, 2, 4, 3, 3};
  EXPECT_THAT(fires(triggers::MaxValueTrigger("value"), values), ElementsAre(2, 6));
  EXPECT_THAT(fires(triggers::MinValueTrigger("value"), values), ElementsAre(2, 4));
  EXPECT_THAT(fires(triggers::MaxValueTrigger("value", {1, "iteration"}), values),
              ElementsAre(1, 6));
  auto nearer = [](double best, double value) { return std::abs(value - 3) < std::abs(best - 3); };
  EXPECT_THAT(fires(triggers::BestValueTrigger("value", nearer), values), ElementsAre(2, 6));
}

TEST_F(TriggersTest, ANumberIsBetterThanNone) {
  EXPECT_THAT(fires(triggers::MinValueTrigger("value", {1, "iteration"}), {NAN, 2, NAN, 1}),
              ElementsAre(2, 4));
}

TEST_F(TriggersTest, WhatNobodyReportsIsToldOfOnce) {
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(fires(triggers::MinValueTrigger("lose", {1, "iteration"}), {1, 1, 1}).empty());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "a trigger by the best value: nobody has reported \"lose\" so far; there are: "
            "main/loss, value\n");
}

TEST_F(TriggersTest, EarlyStoppingEndsARun) {
  struct Case {
    const char* name;
    triggers::EarlyStoppingOptions options;
    std::vector<double> values;
    std::int64_t end;
  };
  const Trigger each(1, "iteration");
  const std::vector<Case> cases = {
      {"less is better", {each, "value", 2, "auto"}, {3, 2, 2, 1, 1, 2, 0}, 6},
      {"more is better", {each, "value", 2, "max"}, {3, 2, 4, 1, 4, 9}, 5},
      {"a NaN is not", {each, "value", 1, "min"}, {3, NAN, 1}, 2},
      {"never better", {each, "value", 3}, {1, 1, 1, 1, 0}, 4},
      {"the most", {each, "value", 9, "auto", false, {3, "iteration"}}, {4, 3, 2, 1}, 3},
      {"epochs", {{1, "epoch"}, "value", 1}, {1, 3, 2, 2, 9, 9}, 4},
  };
  for (const Case& c : cases) {
    Trainer trainer = make_trainer(triggers::EarlyStoppingTrigger(c.options), c.values);
    trainer.run();
    EXPECT_EQ(trainer.updater().iteration(), c.end) << c.name;
  }
  EXPECT_THROW(triggers::EarlyStoppingTrigger({.patience = 0}), ValueError);
  EXPECT_THAT(
      testing::thrown<ValueError>([] { triggers::EarlyStoppingTrigger unknown({.mode = "most"}); }),
      HasSubstr("not \"most\""));
}

TEST_F(TriggersTest, ByAListOfTimes) {
  const std::vector<double> values(9, 0);
  EXPECT_THAT(fires(triggers::ManualScheduleTrigger({2, 5, 5.5}, "iteration"), values),
              ElementsAre(2, 5, 6));
  EXPECT_THAT(fires(triggers::ManualScheduleTrigger({0.5, 3}, "epoch"), values), ElementsAre(1, 6));
  EXPECT_THROW(triggers::ManualScheduleTrigger({}, "epoch"), ValueError);
  EXPECT_THROW(triggers::ManualScheduleTrigger({1}, "day"), ValueError);
}

TEST_F(TriggersTest, OnceAndByTheClock) {
  EXPECT_THAT(fires(triggers::OnceTrigger(), {0, 0, 0}), ElementsAre(1));
  EXPECT_TRUE(fires(triggers::TimeTrigger(1e6), {0, 0, 0}).empty());
  EXPECT_THAT(fires(triggers::TimeTrigger(1e-9), {0, 0}), ElementsAre(1, 2));
  EXPECT_THROW(triggers::TimeTrigger(0), ValueError);
}

/// Each trigger's iterations of a whole run, and of one that went on from a file in between.
TEST_F(TriggersTest, GoOnFromAFile) {
  const std::vector<double> values = {5, 4, 6, 3, 3.5, 2, 2, 2.5, 1, 7};
  const std::vector<std::pair<const char*, Trigger>> all = {
      {"max", triggers::MaxValueTrigger("value", {2, "iteration"})},
      {"min", triggers::MinValueTrigger("value", {3, "iteration"})},
      {"list", triggers::ManualScheduleTrigger({1, 4, 5, 9}, "iteration")},
      {"once", triggers::OnceTrigger()},
  };
  for (const auto& [name, trigger] : all) {
    for (int cut = 1; cut < 10; ++cut) {
      std::vector<std::int64_t> whole, parts;
      auto run = [&](std::vector<std::int64_t>& at, std::int64_t end, const char* from) {
        Trainer trainer = make_trainer({end, "iteration"}, values);
        trainer.extend([&](Trainer& t) { at.push_back(t.updater().iteration()); },
                       {.name = "noted", .trigger = trigger});
        trainer.extend(
            [&](Trainer& t) {
              if (t.updater().iteration() == cut) serializers::save_npz(folder_ / "cut.npz", t);
            },
            {.name = "saved", .priority = -1});
        if (from) serializers::load_npz(folder_ / from, trainer);
        trainer.run();
      };
      run(whole, 10, nullptr);
      run(parts, cut, nullptr);
      run(parts, 10, "cut.npz");
      EXPECT_EQ(parts, whole) << name << " cut after " << cut;
    }
  }
}

TEST_F(TriggersTest, EarlyStoppingGoesOnFromAFile) {
  const std::vector<double> values = {5, 4, 4, 4.5, 3, 3, 3, 3, 1};  // stops after 8
  for (int period : {1, 2}) {
    auto stop = [&] {
      return triggers::EarlyStoppingTrigger({.check_trigger = {period, "iteration"},
                                             .monitor = "value",
                                             .patience = period == 1 ? 3 : 1,
                                             .max_trigger = {9, "iteration"}});
    };
    Trainer whole = make_trainer(stop(), values);
    whole.run();
    std::int64_t end = whole.updater().iteration();
    EXPECT_EQ(end, 8);
    for (int cut = 1; cut < end; ++cut) {
      auto saved = [&](Trainer& t) {
        if (t.updater().iteration() == cut) serializers::save_npz(folder_ / "cut.npz", t);
      };
      Trainer first = make_trainer(stop(), values), rest = make_trainer(stop(), values);
      first.extend(saved, {.priority = -1});
      first.run();
      rest.extend(saved, {.priority = -1});
      serializers::load_npz(folder_ / "cut.npz", rest);
      rest.run();
      EXPECT_EQ(rest.updater().iteration(), end) << period << " cut after " << cut;
    }
  }
}

}  // namespace
}  // namespace rensa::training

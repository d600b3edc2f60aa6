// DumpGraph: the file, that it is written once, captured runs, runs that go on.
#include <gmock/gmock.h>

#include <filesystem>

#include "rensa/core/error.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/serializers/npz.h"
#include "rensa/training/training.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"
#include "tests/training/models.h"

namespace rensa {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class DumpGraphTest : public ::testing::Test {
 protected:
  training::Trainer make_trainer(int iterations, training::StandardUpdaterOptions options = {},
                                 const std::string& root = "main/loss") {
    optimizer_.setup(model_);
    iterators::SerialIterator iterator(testing::line_data(4), 2, {.shuffle = false});
    training::Trainer trainer(training::StandardUpdater(iterator, optimizer_, options),
                              {iterations, "iteration"}, folder_ / "out");
    trainer.extend(extensions::DumpGraph(root));
    return trainer;
  }
  std::string path() const { return folder_ / "out/cg.dot"; }
  testing::Line model_;
  optimizers::SGD optimizer_{0.01};
  testing::TemporaryFolder folder_;
};

TEST_F(DumpGraphTest, WritesTheFirstIterationsGraphOnce) {
  training::Trainer trainer = make_trainer(3);
  bool kept = true;
  trainer.extend(
      [&](training::Trainer& t) {
        kept = config().keep_graph_on_report;
        if (t.updater().iteration() == 1) {
          EXPECT_THAT(testing::read_file(path()), HasSubstr("digraph"));
          std::filesystem::remove(path());
        } else {
          EXPECT_FALSE(t.reporter().reported_variable("main/loss").defined());
        }
      },
      {.priority = -1});
  EXPECT_FALSE(config().keep_graph_on_report);
  trainer.run();
  EXPECT_FALSE(kept);
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(DumpGraphTest, NamesFunctionsAndParameters) {
  for (Device device : testing::test_devices()) {
    make_trainer(1, {.device = device}).run();
    EXPECT_THAT(testing::read_file(path()),
                AllOf(HasSubstr("label=\"/w: float32, " + device.str() + "\""),
                      HasSubstr("label=\"(2,), float32, " + device.str() + "\""),
                      HasSubstr("label=\"mean\"")));
  }
}

TEST_F(DumpGraphTest, ACapturedRunIsReplayedAfterwards) {
  for (Device device : testing::test_devices()) {
    training::StandardUpdaterOptions options{.device = device, .capture = true};
    options.capture_options.replay_lists = true;
    optimizer_.setup(model_);
    iterators::SerialIterator iterator(testing::line_data(4), 2, {.shuffle = false});
    training::StandardUpdater updater(iterator, optimizer_, options);
    training::Trainer trainer(updater, {12, "iteration"}, folder_ / "out");
    trainer.extend(extensions::DumpGraph("main/loss"));
    trainer.run();
    EXPECT_THAT(testing::read_file(path()), HasSubstr("label=\"/w: "));
    EXPECT_GT(updater.capture_stats().replays, 5) << updater.capture_stats().last_fallback;
    std::filesystem::remove(path());
  }
}

TEST_F(DumpGraphTest, ARunThatGoesOnDoesNotWriteItAgain) {
  training::Trainer first = make_trainer(2), rest = make_trainer(4);
  first.run();
  serializers::save_npz(folder_ / "cut.npz", first);
  serializers::load_npz(folder_ / "cut.npz", rest);
  std::filesystem::remove(path());
  rest.run();
  EXPECT_FALSE(std::filesystem::exists(path()));
  EXPECT_FALSE(config().keep_graph_on_report);
}

TEST_F(DumpGraphTest, ANameThatNobodyReportsIsTold) {
  training::Trainer trainer = make_trainer(2, {}, "main/los");
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(testing::thrown<ValueError>([&] { trainer.run(); }),
              AllOf(HasSubstr("\"main/los\""), HasSubstr("main/loss")));
  ::testing::internal::GetCapturedStderr();
  EXPECT_FALSE(config().keep_graph_on_report);
}

TEST_F(DumpGraphTest, AStepThatKeepsGraphsStaysEager) {
  UsingConfig keep(&Config::keep_graph_on_report, true);
  Variable x(xp::ones({2}));
  Reporter reporter;
  auto step = capture(
      [](const Variable& in) {
        Variable y = F::exp(in);
        report({{"y", y}, {"n", 3}});
        return y;
      },
      {.replay_lists = true});
  for (int i = 0; i < 5; ++i) {
    Observation observation;
    auto scope = reporter.scope(observation);
    (void)step(x);
    EXPECT_TRUE(reporter.reported_variable("y").creator());
    EXPECT_FALSE(reporter.reported_variable("n").defined());
  }
  EXPECT_THAT(step.stats().last_fallback, HasSubstr("keep_graph_on_report"));
}

}  // namespace
}  // namespace rensa

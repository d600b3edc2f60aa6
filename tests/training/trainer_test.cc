// The training loop: triggers, the order of extensions, what happens on an exception, the log.
#include "rensa/training/trainer.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "rensa/core/error.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/training/training.h"
#include "tests/comma_locale.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"
#include "tests/training/models.h"

namespace rensa::training {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Line;
using testing::TemporaryFolder;

class TrainerTest : public ::testing::Test {
 protected:
  // A shell has the programs that it starts in the background ignore Ctrl-C.
  TrainerTest() : interrupt_(::signal(SIGINT, SIG_DFL)) { optimizer_.setup(model_); }
  ~TrainerTest() override { ::signal(SIGINT, interrupt_); }
  Trainer make_trainer(Trigger stop, std::int64_t batch_size = 2, std::int64_t n = 4) {
    iterators::SerialIterator iterator(testing::line_data(n), batch_size, {.shuffle = false});
    return Trainer(StandardUpdater(iterator, optimizer_), std::move(stop), folder_ / "out");
  }
  Line model_;
  optimizers::SGD optimizer_{0.01};
  TemporaryFolder folder_;

 private:
  void (*interrupt_)(int);
};

TEST_F(TrainerTest, LearnsAndStopsAtTheTrigger) {
  Trainer trainer = make_trainer({30, "epoch"});
  trainer.run();
  EXPECT_EQ(trainer.updater().iteration(), 60);
  EXPECT_EQ(trainer.updater().epoch(), 30);
  EXPECT_EQ(optimizer_.t(), 60);
  EXPECT_EQ(optimizer_.epoch(), 30);
  EXPECT_NEAR(model_.w.item<double>(), 2, 1e-2);
  EXPECT_GT(trainer.elapsed_time(), 0);
}

TEST_F(TrainerTest, RunsOnce) {
  Trainer trainer = make_trainer({1, "iteration"});
  trainer.run();
  EXPECT_THROW(trainer.run(), ValueError);
  EXPECT_THROW(trainer.extend([](Trainer&) {}), ValueError);
}

TEST_F(TrainerTest, ATrainerMayOutliveTheHandlesItIsMadeOf) {
  auto factory = [&] { return make_trainer({3, "iteration"}); };
  Trainer trainer = factory();
  Line moved = std::move(model_);
  trainer.run();
  EXPECT_NE(moved.w.item<double>(), 0);
}

TEST_F(TrainerTest, ExtensionsAreCalledByPriorityThenInOrder) {
  std::vector<std::string> calls;
  Trainer trainer = make_trainer({2, "iteration"});
  auto note = [&](const char* name) { return [&calls, name](Trainer&) { calls.push_back(name); }; };
  trainer.extend(note("a"));
  trainer.extend(note("b"), {.priority = kPriorityWriter});
  trainer.extend(note("c"));
  trainer.extend(note("d"), {.trigger = {2, "iteration"}, .priority = kPriorityEditor});
  trainer.run();
  EXPECT_THAT(calls, ElementsAre("b", "a", "c", "b", "d", "a", "c"));
}

TEST_F(TrainerTest, Triggers) {
  std::vector<std::int64_t> epochs, halves, threes, own;
  Trainer trainer = make_trainer({5, "epoch"}, 2, 5);  // 12 iterations and a half
  auto note = [](std::vector<std::int64_t>* at) {
    return [at](Trainer& t) { at->push_back(t.updater().iteration()); };
  };
  trainer.extend(note(&epochs), {.trigger = {1, "epoch"}});
  trainer.extend(note(&halves), {.trigger = {0.5, "epoch"}});
  trainer.extend(note(&threes), {.trigger = {3, "iteration"}});
  trainer.extend(note(&own), {.trigger = [](Trainer& t) { return t.updater().iteration() == 7; }});
  trainer.run();
  EXPECT_THAT(epochs, ElementsAre(3, 5, 8, 10, 13));
  EXPECT_THAT(halves, ElementsAre(2, 3, 4, 5, 7, 8, 9, 10, 12, 13));
  EXPECT_THAT(threes, ElementsAre(3, 6, 9, 12));
  EXPECT_THAT(own, ElementsAre(7));
  EXPECT_THROW(Trigger(0, "epoch"), ValueError);
  EXPECT_THROW(Trigger(1, "day"), ValueError);
}

TEST_F(TrainerTest, EqualNamesGetANumber) {
  Trainer trainer = make_trainer({1, "iteration"});
  trainer.extend(extensions::LogReport({.keys = {"a"}, .filename = "a"}));
  trainer.extend(extensions::LogReport({.keys = {"b"}, .filename = "b"}));
  EXPECT_EQ(trainer.get_extension("LogReport_1").name, "LogReport_1");
  EXPECT_NE(&trainer.get_extension("LogReport"), &trainer.get_extension("LogReport_1"));
  EXPECT_THROW(trainer.get_extension("LogReport_2"), ValueError);
}

struct Watcher final : Extension {
  explicit Watcher(std::vector<std::string>* c) : calls(c) {}
  void initialize(Trainer&) override { calls->push_back("initialize"); }
  void operator()(Trainer&) override { calls->push_back("call"); }
  void on_error(Trainer&, const std::exception& e) override { calls->push_back(e.what()); }
  void finalize() override { calls->push_back("finalize"); }
  std::vector<std::string>* calls;
};

TEST_F(TrainerTest, AnExceptionIsShownToAllAndRethrown) {
  std::vector<std::string> calls;
  Trainer trainer = make_trainer({9, "iteration"});
  trainer.extend(Watcher(&calls));
  trainer.extend([](Trainer& t) {
    if (t.updater().iteration() == 2) throw IndexError("the second");
  });
  EXPECT_THROW(trainer.run(), IndexError);
  EXPECT_THAT(calls, ElementsAre("initialize", "call", "call", "the second", "finalize"));
  EXPECT_EQ(ThreadState::current().reporter, nullptr);
}

TEST_F(TrainerTest, AnExceptionOfAnyKindIsShownToAllAndRethrown) {
  std::vector<std::string> calls;
  Trainer trainer = make_trainer({9, "iteration"});
  trainer.extend(Watcher(&calls));
  struct Throws final : Extension {
    void operator()(Trainer&) override { throw 7; }
    void on_error(Trainer&, const std::exception&) override { throw 8; }
    void finalize() override { throw 9; }
  };
  trainer.extend(Throws());
  ::testing::internal::CaptureStderr();
  int thrown = 0;
  try {
    trainer.run();
  } catch (int number) {
    thrown = number;
  }
  std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(thrown, 7);
  EXPECT_THAT(calls, ElementsAre("initialize", "call", "an exception that is no std::exception",
                                 "finalize"));
  EXPECT_THAT(text, HasSubstr("Exception in the training loop: an exception that is no"));
  EXPECT_THAT(text, HasSubstr("Exception in on_error of extension"));
  EXPECT_THAT(text, HasSubstr("Exception in finalize"));
}

TEST_F(TrainerTest, AFolderThatCannotBeMadeIsNamed) {
  testing::write_file(folder_ / "out", "a file");
  Trainer trainer = make_trainer({1, "iteration"});
  EXPECT_THAT(testing::thrown<SerializationError>([&] { trainer.run(); }),
              HasSubstr(folder_ / "out"));
}

TEST_F(TrainerTest, StopEndsTheRunAfterTheIteration) {
  std::vector<std::string> calls;
  Trainer trainer = make_trainer({9, "iteration"});
  trainer.extend(
      [](Trainer& t) {
        if (t.updater().iteration() == 2) t.stop();
      },
      {.priority = kPriorityWriter});
  trainer.extend(Watcher(&calls));
  trainer.run();
  EXPECT_EQ(trainer.updater().iteration(), 2);
  EXPECT_THAT(calls, ElementsAre("initialize", "call", "call", "finalize"));

  Trainer other = make_trainer({1000000, "epoch"});
  std::thread outside([&] { other.stop(); });
  other.run();
  outside.join();
  EXPECT_LT(other.updater().epoch(), 1000000);
}

extern "C" {
static void ignore_the_signal(int) {}
}

TEST_F(TrainerTest, CtrlCFinishesTheIterationAndFinalizes) {
  std::vector<std::string> calls;
  Trainer trainer = make_trainer({9, "iteration"});
  trainer.extend(
      [&](Trainer& t) {
        if (t.updater().iteration() == 2) ::raise(SIGINT);
      },
      {.priority = kPriorityWriter});
  trainer.extend(Watcher(&calls));
  ::testing::internal::CaptureStderr();
  std::string text = testing::thrown<Interrupted>([&] { trainer.run(); });
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("Ctrl-C again"));
  EXPECT_EQ(text, "training ended by Ctrl-C after iteration 2 (1 epochs)");
  EXPECT_THAT(calls, ElementsAre("initialize", "call", "call", "finalize"));
  EXPECT_EQ(optimizer_.t(), 2);
  struct sigaction now = {};
  ::sigaction(SIGINT, nullptr, &now);
  EXPECT_EQ(now.sa_handler, SIG_DFL);

  // The next run is ended by its own Ctrl-C only.
  Trainer next = make_trainer({2, "iteration"});
  EXPECT_NO_THROW(next.run());
}

TEST_F(TrainerTest, CtrlCAtTheLastIterationChangesNothing) {
  Trainer trainer = make_trainer({2, "iteration"});
  trainer.extend([&](Trainer& t) {
    if (t.updater().iteration() == 2) ::raise(SIGINT);
  });
  EXPECT_NO_THROW(trainer.run());
}

TEST_F(TrainerTest, AHandlerOfTheProgramsOwnIsLeftAlone) {
  struct sigaction own = {}, before = {};
  own.sa_handler = ignore_the_signal;
  ::sigaction(SIGINT, &own, &before);
  Trainer trainer = make_trainer({3, "iteration"});
  trainer.extend([](Trainer&) { ::raise(SIGINT); });
  EXPECT_NO_THROW(trainer.run());
  ::sigaction(SIGINT, &before, nullptr);
}

using TrainerDeathTest = TrainerTest;
TEST_F(TrainerDeathTest, ASecondCtrlCEndsTheProcess) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        Trainer trainer = make_trainer({9, "iteration"});
        trainer.extend([](Trainer&) { ::raise(SIGINT), ::raise(SIGINT); });
        trainer.run();
      },
      ::testing::KilledBySignal(SIGINT), "Ctrl-C again");
}

TEST_F(TrainerTest, AnIteratorThatEndsIsAnError) {
  iterators::SerialIterator once(testing::line_data(4), 2, {.repeat = false});
  Trainer trainer(StandardUpdater(once, optimizer_), {3, "iteration"}, folder_ / "out");
  EXPECT_THROW(trainer.run(), ValueError);
}

TEST_F(TrainerTest, LogReportWritesMeansOfItsInterval) {
  Trainer trainer = make_trainer({2, "epoch"});
  std::vector<double> losses;
  trainer.extend(
      [&](Trainer& t) { losses.push_back(t.observation().at("main/loss").item<double>()); });
  trainer.extend([&](Trainer&) { report({{"own", 3}}); }, {.priority = kPriorityWriter});
  trainer.extend(extensions::LogReport());
  trainer.run();
  auto log = nlohmann::json::parse(testing::read_file(folder_ / "out/log"));
  ASSERT_EQ(log.size(), 2u);
  for (std::size_t e = 0; e < 2; ++e) {
    EXPECT_NEAR(log[e]["main/loss"].get<double>(), (losses[2 * e] + losses[2 * e + 1]) / 2, 1e-6);
    EXPECT_EQ(log[e]["own"], 3);
    EXPECT_EQ(log[e]["epoch"], e + 1);
    EXPECT_EQ(log[e]["iteration"], 2 * (e + 1));
    EXPECT_GT(log[e]["elapsed_time"].get<double>(), 0);
  }
}

TEST_F(TrainerTest, LogReportTakesWhatPostprocessAdds) {
  Trainer trainer = make_trainer({1, "epoch"});
  std::ostringstream table;
  trainer.extend(extensions::LogReport({.postprocess = [](std::map<std::string, double>& means) {
    means["twice"] = 2 * means.at("main/loss");
  }}));
  trainer.extend(extensions::PrintReport({"twice"}, {.out = &table}));
  trainer.run();
  auto log = nlohmann::json::parse(testing::read_file(folder_ / "out/log"));
  EXPECT_EQ(log[0]["twice"].get<double>(), 2 * log[0]["main/loss"].get<double>());
  EXPECT_NEAR(std::stod(table.str().substr(table.str().find('\n'))), log[0]["twice"].get<double>(),
              1e-5 * log[0]["twice"].get<double>());
}

TEST_F(TrainerTest, AKeyThatIsNoTextIsReplacedInTheLog) {
  Trainer trainer = make_trainer({1, "epoch"});
  trainer.extend(
      [&](Trainer&) {
        report(
            {{"bad\xff"
              "key",
              3}});
      },
      {.priority = kPriorityWriter});
  trainer.extend(extensions::LogReport());
  trainer.run();
  auto log = nlohmann::json::parse(testing::read_file(folder_ / "out/log"));
  EXPECT_EQ(log[0]["bad\uFFFDkey"], 3);
}

TEST_F(TrainerTest, ALogThatCannotBeWrittenSaysWhy) {
  std::filesystem::create_directories(folder_ / "out");
  std::filesystem::create_symlink("/dev/full", folder_ / "out/log");
  Trainer trainer = make_trainer({1, "epoch"});
  trainer.extend(extensions::LogReport());
  EXPECT_THAT(testing::message_of<SerializationError>([&] { trainer.run(); }),
              AllOf(HasSubstr("LogReport"), HasSubstr("out/log"), HasSubstr("No space left")));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_ / "out"), {}), 1);
}

TEST_F(TrainerTest, LogsAreTheSameInEveryLocale) {
  testing::CommaLocale comma;
  Trainer trainer = make_trainer({1, "epoch"});
  trainer.extend([&](Trainer&) { report({{"own", 1234567.5}}); }, {.priority = kPriorityWriter});
  trainer.extend(extensions::LogReport());
  std::ostringstream out;
  trainer.extend(extensions::PrintReport({"iteration", "own"}, {.out = &out}));
  trainer.run();
  EXPECT_THAT(testing::read_file(folder_ / "out/log"), HasSubstr("\"own\": 1234567.5"));
  EXPECT_THAT(out.str(), HasSubstr("1.23457e+06"));
}

TEST_F(TrainerTest, PrintReportMakesATable) {
  Trainer trainer = make_trainer({2, "epoch"});
  std::ostringstream out;
  trainer.extend([&](Trainer&) { report({{"own", 0.25}}); }, {.priority = kPriorityWriter});
  trainer.extend(extensions::LogReport({.filename = ""}));
  trainer.extend(extensions::PrintReport({"epoch", "own", "missing", "iteration"}, {.out = &out}));
  ::testing::internal::CaptureStderr();
  trainer.run();
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "PrintReport: nobody has reported \"missing\" so far; there are: epoch, iteration, "
            "elapsed_time, main/loss, own\n");
  EXPECT_EQ(out.str(),
            "epoch       own         missing     iteration   \n"
            "1           0.25                    2           \n"
            "2           0.25                    4           \n");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out/log"));
}

TEST_F(TrainerTest, LogReportTellsOfAKeyThatNobodyReports) {
  Trainer trainer = make_trainer({2, "epoch"});
  trainer.extend(extensions::LogReport({.keys = {"main/los", "main/loss"}, .filename = ""}));
  ::testing::internal::CaptureStderr();
  trainer.run();
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "LogReport: nobody has reported \"main/los\" so far; there are: epoch, iteration, "
            "elapsed_time, main/loss\n");
}

TEST_F(TrainerTest, PrintReportNeedsItsLog) {
  Trainer trainer = make_trainer({1, "iteration"});
  trainer.extend(extensions::PrintReport({"epoch"}));
  EXPECT_THROW(trainer.run(), ValueError);
}

TEST_F(TrainerTest, ProgressBarText) {
  Trainer trainer = make_trainer({4, "iteration"}, 2, 8);
  extensions::ProgressBar bar({.bar_length = 10});
  std::string text;
  trainer.extend([&](Trainer& t) {
    if (t.updater().iteration() == 1) text = bar.text(t);
  });
  trainer.run();
  EXPECT_THAT(text, HasSubstr("total [##........]  25.00%"));
  EXPECT_THAT(text, HasSubstr("1 iter, 0 epoch / 4 iterations"));
  EXPECT_THROW(extensions::ProgressBar({.update_interval = 0}), ValueError);
  EXPECT_THROW(extensions::ProgressBar({.line_interval = -1}), ValueError);
}

/// Into what is no terminal it writes lines, each whole.
TEST_F(TrainerTest, ProgressBarLines) {
  std::ostringstream out, seldom;
  Trainer trainer = make_trainer({2, "epoch"}, 2, 8);
  trainer.extend(extensions::ProgressBar(
      {.update_interval = 3, .line_interval = 0, .entries = {"main/loss", "none"}, .out = &out}));
  trainer.extend(extensions::ProgressBar({.line_interval = 0.05, .out = &seldom}));
  trainer.extend([&](Trainer& t) {
    if (t.updater().iteration() == 5) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  });
  trainer.run();
  EXPECT_THAT(out.str(),
              ::testing::MatchesRegex("  epoch 0.75 / 2, iteration 3, 37.5%, [0-9.e+]+ iters/sec, "
                                      "0:00:00 to go, main/loss [0-9.]+\n"
                                      "  epoch 1.50 / 2, iteration 6, 75.0%, [^\n]*\n"));
  EXPECT_THAT(seldom.str(), HasSubstr("iteration 6,"));
  EXPECT_THAT(seldom.str(), ::testing::Not(HasSubstr("iteration 7,")));
}

/// Called once in each evaluation, before the first batch, outside of what the evaluator sets.
TEST_F(TrainerTest, EvaluatorHook) {
  iterators::SerialIterator test(testing::line_data(4), 2, {.repeat = false, .shuffle = false});
  std::vector<std::string> calls;
  extensions::EvaluatorOptions options;
  options.eval_hook = [&](extensions::Evaluator& evaluator) {
    EXPECT_TRUE(config().train);
    EXPECT_EQ(&evaluator.target(), &model_);
    EXPECT_EQ(&evaluator.iterator().dataset(), &test.dataset());
    model_.w.array().fill(2);
    calls.push_back("hook");
  };
  options.eval_func = [&](const Variables& columns) {
    calls.push_back("batch");
    model_(columns[0], columns[1]);
  };
  extensions::Evaluator evaluator(test, model_, cpu(), options);
  for (int run = 0; run < 2; ++run) {
    calls.clear();
    model_.w.array().fill(0);
    EXPECT_EQ(evaluator.evaluate().at("main/loss"), 0);
    EXPECT_EQ(calls, (std::vector<std::string>{"hook", "batch", "batch"}));
  }
}

TEST_F(TrainerTest, EvaluatorProgress) {
  iterators::SerialIterator test(testing::line_data(10), 2, {.repeat = false, .shuffle = false});
  std::ostringstream out;
  extensions::EvaluatorOptions options;
  options.progress_bar = {.update_interval = 2, .line_interval = 0, .out = &out};
  extensions::Evaluator evaluator(test, model_, cpu(), options);
  evaluator.name = "test";
  evaluator.evaluate();
  EXPECT_EQ(out.str(), "  test: 40.0%, batch 2\n  test: 80.0%, batch 4\n");
  out.str("");
  options.progress_bar->line_interval = 60;
  extensions::Evaluator(test, model_, cpu(), options).evaluate();
  EXPECT_EQ(out.str(), "");
}

TEST_F(TrainerTest, EvaluatorReportsMeansWithoutTraining) {
  model_.w.array().fill(1);
  iterators::SerialIterator test(testing::line_data(3), 2, {.repeat = false, .shuffle = false});
  extensions::Evaluator evaluator(test, model_);
  for (int run = 0; run < 2; ++run) {  // the iterator is reset
    auto means = evaluator.evaluate();
    // (1 + 4) / 2 and 9, each batch counted once, as in Chainer.
    EXPECT_NEAR(means.at("main/loss"), (2.5 + 9) / 2, 1e-5);
  }
  EXPECT_FALSE(model_.w.grad().defined());

  bool train = true, backprop = true;
  std::string keys;
  Trainer trainer = make_trainer({1, "epoch"});
  trainer.extend(
      extensions::Evaluator(test, model_, cpu(), {.eval_func = [&](const Variables& columns) {
                              train = config().train;
                              backprop = config().enable_backprop;
                              model_(columns[0], columns[1]);
                            }}));
  trainer.extend([&](Trainer& t) {
    for (const auto& [key, value] : t.observation()) keys += key + " ";
  });
  trainer.run();
  EXPECT_FALSE(train || backprop);
  EXPECT_TRUE(config().train && config().enable_backprop);
  EXPECT_EQ(keys, "main/loss main/loss validation/main/loss ");

  iterators::SerialIterator endless(testing::line_data(3), 2);
  EXPECT_THROW(extensions::Evaluator(endless, model_), ValueError);
}

}  // namespace
}  // namespace rensa::training

// Snapshots: what is in the files, who writes them, which stay, and runs that go on from them.
#include "rensa/training/extensions/snapshot.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <optional>

#include "rensa/core/error.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/serializers/npz.h"
#include "rensa/training/training.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"
#include "tests/training/models.h"

namespace rensa::training {
namespace {

namespace fs = std::filesystem;
using extensions::SnapshotOptions;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace snapshot_writers = extensions::snapshot_writers;

class SnapshotTest : public ::testing::Test {
 protected:
  /// Runs of 2 iterations an epoch.
  Trainer make_trainer(int iterations) {
    model_.w.array().fill(0);
    optimizer_ = optimizers::MomentumSGD(0.01);
    optimizer_.setup(model_);
    iterators::SerialIterator iterator(testing::line_data(4), 2, {.seed = 1});
    return Trainer(StandardUpdater(iterator, optimizer_), {iterations, "iteration"}, out_);
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(out_)) {
      names.push_back(entry.path().filename().string());
    }
    std::ranges::sort(names);
    return names;
  }
  double weight_in(const std::string& name, const std::string& path) const {
    testing::Line read;
    serializers::load_npz(out_ + "/" + name, read, {.path = path});
    return read.w.item<double>();
  }

  testing::Line model_;
  optimizers::MomentumSGD optimizer_{0.01};
  testing::TemporaryFolder folder_;
  std::string out_ = folder_ / "out";
};

const std::vector<std::pair<const char*, snapshot_writers::Writer>>& writers() {
  static const std::vector<std::pair<const char*, snapshot_writers::Writer>> all = {
      {"simple", snapshot_writers::SimpleWriter()},
      {"thread", snapshot_writers::ThreadWriter()},
      {"queue", snapshot_writers::ThreadQueueWriter()},
  };
  return all;
}

TEST_F(SnapshotTest, HoldsWhatWasThereWhenItWasTaken) {
  for (const auto& [name, writer] : writers()) {
    std::vector<double> weights;
    Trainer trainer = make_trainer(6);
    trainer.extend(extensions::snapshot({.writer = writer}));
    trainer.extend([&](Trainer&) { weights.push_back(model_.w.item<double>()); },
                   {.trigger = {1, "epoch"}});
    trainer.run();
    EXPECT_THAT(files(), ElementsAre("snapshot_iter_2", "snapshot_iter_4", "snapshot_iter_6"));
    for (int i : {0, 1, 2}) {
      EXPECT_EQ(weight_in("snapshot_iter_" + std::to_string(2 * i + 2), "updater/model:main"),
                weights[static_cast<std::size_t>(i)])
          << name;
    }
    fs::remove_all(out_);
  }
}

TEST_F(SnapshotTest, OfAModelAndOfAnOptimizer) {
  Trainer trainer = make_trainer(3);
  trainer.extend(
      extensions::snapshot_object(model_, "model_{.updater.epoch}_{.updater.iteration}.npz"),
      {.trigger = {3, "iteration"}});
  trainer.extend(extensions::snapshot_object(optimizer_, "optimizer"),
                 {.trigger = {3, "iteration"}});
  testing::Line moved = std::move(model_);
  trainer.run();
  EXPECT_THAT(files(), ElementsAre("model_1_3.npz", "optimizer"));
  EXPECT_EQ(weight_in("model_1_3.npz", ""), moved.w.item<double>());
  EXPECT_NE(moved.w.item<double>(), 0);
}

TEST_F(SnapshotTest, TheLatestStay) {
  fs::create_directories(out_);
  for (const char* other : {"snapshot_iter_", "snapshot_iter_x", "snapshot_iter_1.bak", "log"}) {
    std::ofstream(out_ + "/" + other) << "kept";
  }
  Trainer trainer = make_trainer(10);
  trainer.extend(
      extensions::snapshot({.writer = snapshot_writers::ThreadQueueWriter(), .n_retains = 2}));
  trainer.run();
  EXPECT_THAT(files(), ElementsAre("log", "snapshot_iter_", "snapshot_iter_1.bak",
                                   "snapshot_iter_10", "snapshot_iter_8", "snapshot_iter_x"));
}

TEST_F(SnapshotTest, ARunGoesOnFromTheLatest) {
  Trainer whole = make_trainer(7);
  whole.run();
  double expected = model_.w.item<double>();
  for (const auto& [name, writer] : writers()) {
    fs::remove_all(out_);
    const SnapshotOptions options = {.writer = writer, .n_retains = 1, .autoload = true};
    for (int end : {3, 5, 7}) {
      Trainer part = make_trainer(end);
      std::int64_t first = -1;
      part.extend([&](Trainer& t) {
        if (first < 0) first = t.updater().iteration();
      });
      part.extend(extensions::snapshot(options), {.trigger = {1, "iteration"}});
      part.run();
      EXPECT_EQ(first, end == 3 ? 1 : end - 1) << name;
    }
    EXPECT_EQ(model_.w.item<double>(), expected) << name;
  }
}

TEST_F(SnapshotTest, ADamagedFileIsPassedBy) {
  Trainer trainer = make_trainer(4);
  trainer.extend(extensions::snapshot());
  trainer.run();
  fs::resize_file(out_ + "/snapshot_iter_4", 100);
  {
    Trainer next = make_trainer(5);
    std::vector<std::int64_t> iterations;
    next.extend([&](Trainer& t) { iterations.push_back(t.updater().iteration()); });
    next.extend(extensions::snapshot({.autoload = true}));
    ::testing::internal::CaptureStderr();
    // The name of what notes the iterations is not in the file: it is another trainer's.
    EXPECT_THROW(next.run(), SerializationError);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("snapshot_iter_4 is left out"));
  }
  Trainer next = make_trainer(5);
  next.extend(extensions::snapshot({.autoload = true}), {.trigger = {1, "epoch"}});
  ::testing::internal::CaptureStderr();
  next.run();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("snapshot_iter_4 is left out"));
  EXPECT_EQ(next.updater().iteration(), 5);
  EXPECT_GT(fs::file_size(out_ + "/snapshot_iter_4"), 100U);
}

TEST_F(SnapshotTest, ConditionErrorsAndInterrupts) {
  bool wanted = false;
  Trainer trainer = make_trainer(6);
  trainer.extend(extensions::snapshot({.filename = "if_{.updater.iteration}",
                                       .condition = [&] { return wanted = !wanted; }}),
                 {.trigger = {1, "iteration"}});
  trainer.extend(extensions::snapshot({.filename = "failed_{.updater.iteration}",
                                       .writer = snapshot_writers::ThreadWriter(),
                                       .snapshot_on_error = true}),
                 {.trigger = {9, "iteration"}});
  trainer.extend([](Trainer& t) {
    if (t.updater().iteration() == 4) throw IndexError("the fourth");
  });
  EXPECT_THROW(trainer.run(), IndexError);
  EXPECT_THAT(files(), ElementsAre("failed_4", "if_1", "if_3"));
}

TEST_F(SnapshotTest, ASignalLeavesAFileToGoOnFrom) {
  Trainer whole = make_trainer(6);
  whole.run();
  double expected = model_.w.item<double>();
  for (int signal : {SIGINT, SIGTERM}) {
    auto before = ::signal(signal, SIG_DFL);
    fs::remove_all(out_);
    auto make = [&] {
      Trainer trainer = make_trainer(6);
      trainer.extend(extensions::snapshot({.autoload = true}), {.trigger = {4, "iteration"}});
      trainer.extend(
          [signal](Trainer& t) {
            if (t.updater().iteration() == 3) ::raise(signal);
          },
          {.name = "raises"});
      return trainer;
    };
    Trainer first = make();
    ::testing::internal::CaptureStderr();
    try {
      first.run();
      ADD_FAILURE() << "not interrupted";
    } catch (const Interrupted& interrupted) {
      EXPECT_EQ(interrupted.signal(), signal);
      EXPECT_THAT(interrupted.what(), HasSubstr(signal == SIGINT ? "by Ctrl-C" : "by SIGTERM"));
    }
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("snapshot_iter_3 has the run"));
    EXPECT_THAT(files(), ElementsAre("snapshot_iter_3"));
    Trainer rest = make();
    rest.run();
    EXPECT_EQ(model_.w.item<double>(), expected);
    ::signal(signal, before);
  }
}

/// Takes the folder away after the second iteration, whatever is being written there.
void lose_folder(Trainer& trainer) {
  trainer.extend(
      [](Trainer& t) {
        if (t.updater().iteration() == 2) fs::rename(t.out(), t.out() + ".away");
      },
      {.priority = 300});
}

TEST_F(SnapshotTest, AFileThatCannotBeWritten) {
  for (const auto& [name, writer] : writers()) {
    Trainer trainer = make_trainer(6);
    trainer.extend(extensions::snapshot({.writer = writer}), {.trigger = {1, "iteration"}});
    lose_folder(trainer);
    EXPECT_THAT(testing::thrown<SerializationError>([&] { trainer.run(); }),
                HasSubstr("snapshot: cannot write"))
        << name;
    fs::remove_all(out_ + ".away");

    Trainer going_on = make_trainer(3);
    going_on.extend(extensions::snapshot({.writer = writer, .keep_going = true}),
                    {.trigger = {1, "iteration"}});
    lose_folder(going_on);
    ::testing::internal::CaptureStderr();
    EXPECT_NO_THROW(going_on.run());
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                HasSubstr("the run goes on without a file"))
        << name;
    fs::remove_all(out_ + ".away");
  }
}

TEST_F(SnapshotTest, BadArguments) {
  EXPECT_THAT(
      testing::thrown<ValueError>([] { extensions::Snapshot({.filename = "a_{iteration}"}); }),
      HasSubstr("{.updater.iteration}"));
  EXPECT_THROW(extensions::Snapshot({.filename = ""}), ValueError);
  EXPECT_THROW(extensions::Snapshot({.filename = "folder/a"}), ValueError);
  EXPECT_THROW(extensions::Snapshot({.filename = "{.updater.epoch}{.updater.iteration}"}),
               ValueError);
  EXPECT_THROW(extensions::Snapshot({.n_retains = 0}), ValueError);
}

TEST_F(SnapshotTest, TheBestModelIsKeptThroughASignal) {
  auto before = ::signal(SIGINT, SIG_DFL);
  Trainer trainer = make_trainer(9);
  trainer.extend(extensions::snapshot_object(model_, "best.npz", {.n_retains = 1}),
                 {.trigger = triggers::OnceTrigger()});
  std::optional<double> best;
  trainer.extend([&](Trainer& t) {
    if (!best) best = model_.w.item<double>();
    if (t.updater().iteration() == 3) ::raise(SIGINT);
  });
  ::testing::internal::CaptureStderr();
  EXPECT_THROW(trainer.run(), Interrupted);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::Not(HasSubstr("best.npz")));
  EXPECT_EQ(weight_in("best.npz", ""), *best);
  EXPECT_NE(model_.w.item<double>(), *best);
  ::signal(SIGINT, before);
}

TEST_F(SnapshotTest, ARunThatCannotGoOnLeavesTheFilesAsTheyAre) {
  Trainer trainer = make_trainer(4);
  trainer.extend(extensions::snapshot());
  trainer.run();
  Trainer other = make_trainer(5);
  other.extend([](Trainer&) {}, {.name = "added"});
  other.extend(extensions::snapshot({.snapshot_on_error = true, .n_retains = 1, .autoload = true}));
  EXPECT_THROW(other.run(), SerializationError);
  EXPECT_THAT(files(), ElementsAre("snapshot_iter_2", "snapshot_iter_4"));
}

TEST_F(SnapshotTest, ASecondSigtermWaitsForTheFile) {
  auto before = ::signal(SIGTERM, SIG_DFL);
  Trainer trainer = make_trainer(9);
  trainer.extend(extensions::snapshot());
  trainer.extend([](Trainer& t) {
    if (t.updater().iteration() == 3) ::raise(SIGTERM), ::raise(SIGTERM);
  });
  EXPECT_THROW(trainer.run(), Interrupted);
  EXPECT_THAT(files(), ElementsAre("snapshot_iter_2", "snapshot_iter_3"));
  ::signal(SIGTERM, before);
}

TEST_F(SnapshotTest, AFailureOfOneLeavesTheOthers) {
  auto before = ::signal(SIGINT, SIG_DFL);
  Trainer trainer = make_trainer(9);
  trainer.extend(extensions::snapshot_object(model_, "{.updater.iteration}_lost",
                                             {.snapshot_on_interrupt = true}),
                 {.trigger = {9, "iteration"}});
  trainer.extend(extensions::snapshot(), {.trigger = {9, "iteration"}});
  trainer.extend([&](Trainer& t) {
    if (t.updater().iteration() != 3) return;
    fs::create_directory(out_ + "/3_lost");
    ::raise(SIGINT);
  });
  EXPECT_THROW(trainer.run(), SerializationError);
  EXPECT_THAT(files(), ElementsAre("3_lost", "snapshot_iter_3"));
  ::signal(SIGINT, before);
}

TEST_F(SnapshotTest, OneThatGoesWhileItIsWritten) {
  Trainer trainer = make_trainer(1);
  trainer.run();
  for (int i = 0; i < 20; ++i) {
    extensions::Snapshot snapshot({.filename = "a", .writer = snapshot_writers::ThreadWriter()});
    snapshot(trainer);
  }
  EXPECT_THAT(files(), ElementsAre("a"));
}

/// Writes when it is told to.
class LateBody final : public snapshot_writers::WriterBody {
 public:
  void write(std::function<void()> job) override { jobs_.push_back(std::move(job)); }
  void finalize() override {
    for (auto& job : jobs_) job();
    jobs_.clear();
  }

 private:
  std::vector<std::function<void()>> jobs_;
};

TEST_F(SnapshotTest, TrainingGoesOnBesideWhatIsWrittenLater) {
  Trainer trainer = make_trainer(4);
  std::vector<double> weights;
  snapshot_writers::Writer late(std::make_shared<LateBody>());
  trainer.extend(extensions::snapshot({.writer = late}), {.trigger = {1, "iteration"}});
  trainer.extend([&](Trainer&) { weights.push_back(model_.w.item<double>()); });
  trainer.run();
  EXPECT_EQ(weight_in("snapshot_iter_1", "updater/model:main"), weights[0]);
  EXPECT_NE(weights[0], weights[3]);
}

TEST(SnapshotWriters, TheQueueWaitsForNothingAndTheOtherThreadForOne) {
  std::promise<void> go;
  std::shared_future<void> gone = go.get_future().share();
  std::atomic<int> done{0};
  auto job = [&, gone] { gone.wait(), ++done; };
  snapshot_writers::ThreadQueueWriter queue;
  for (int i = 0; i < 3; ++i) queue(job);
  EXPECT_EQ(done, 0);
  go.set_value();
  queue.finalize();
  EXPECT_EQ(done, 3);
  snapshot_writers::ThreadWriter one;
  one(job), one(job);
  EXPECT_GE(done, 4);
  one.finalize();
  EXPECT_EQ(done, 5);
}

TEST(SnapshotWriters, ErrorsReachTheNextCall) {
  for (const auto& [name, writer] : writers()) {
    auto fail = [&writer = writer] {
      writer([] { throw SerializationError("the first"); });
      writer.finalize();
    };
    EXPECT_THROW(fail(), SerializationError) << name;
    bool wrote = false;
    writer([&] { wrote = true; });
    writer.finalize();
    EXPECT_TRUE(wrote) << name;
  }
}

}  // namespace
}  // namespace rensa::training

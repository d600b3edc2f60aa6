// Snapshots: what is in the files, who writes them, which stay, and runs that go on from them.
#include "rensa/training/extensions/snapshot.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
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
  EXPECT_THROW(extensions::Snapshot({.n_retains = 0}), ValueError);
}

TEST(SnapshotWriters, TheThreadHidesTheTime) {
  using namespace std::chrono_literals;
  std::atomic<int> done{0};
  auto slow = [&] { std::this_thread::sleep_for(50ms), ++done; };
  snapshot_writers::ThreadQueueWriter queue;
  for (int i = 0; i < 3; ++i) queue(slow);
  EXPECT_LT(done, 3);
  queue.finalize();
  EXPECT_EQ(done, 3);
  snapshot_writers::ThreadWriter one;
  one(slow), one(slow);
  EXPECT_GE(done, 4);  // the second one waited for the first
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

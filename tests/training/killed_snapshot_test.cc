// Runs that are killed while they write snapshots, and folders that cannot be written.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <random>

#include "rensa/core/error.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/serializers/npz.h"
#include "rensa/training/training.h"
#include "tests/child_process.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"
#include "tests/training/models.h"

namespace rensa::training {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace snapshot_writers = extensions::snapshot_writers;

/// Its weights are set to the number of each iteration, so that a file tells what it should hold.
struct Large : Chain<Large> {
  Parameter w{Initializer(0.0), {30000}};
  void members(Visitor& v) override { v("w", w); }
  Variable operator()(const Variable& x, const Variable&) const { return (x.mean() * w).mean(); }
};

snapshot_writers::Writer writer_of(std::int64_t turn) {
  if (turn % 3 == 0) return snapshot_writers::SimpleWriter();
  if (turn % 3 == 1) return snapshot_writers::ThreadWriter();
  return snapshot_writers::ThreadQueueWriter();
}

/// What the test below starts and kills: a run that goes on from the latest file in the folder,
/// says on the pipe where it begins and then writes one after each iteration.
TEST(KilledSnapshot, IsWrittenByAProcessThatIsKilled) {
  const char* folder = std::getenv("RENSA_TEST_KILLED");
  if (!folder) GTEST_SKIP() << "is run by KilledSnapshot.NeverLosesTheLatestWholeFile";
  std::int64_t turn = std::atoll(std::getenv("RENSA_TEST_KILLED_TURN"));
  Large model;
  optimizers::SGD optimizer(0.01);
  optimizer.setup(model);
  iterators::SerialIterator iterator(testing::line_data(12), 3, {.seed = 1});
  Trainer trainer(StandardUpdater(iterator, optimizer), {1000000, "iteration"}, folder);
  bool told = false;
  trainer.extend(
      [&](Trainer& t) {
        std::int64_t iteration = t.updater().iteration();
        model.w.array().fill(static_cast<double>(iteration));
        if (told) return;
        told = true;
        std::string text = fmt::format("\nbegan {}, iterations to come\n", iteration);
        (void)!::write(STDOUT_FILENO, text.data(), text.size());
      },
      {.name = "fill", .trigger = {1, "iteration"}, .priority = 300});
  trainer.extend(extensions::snapshot({.writer = writer_of(turn),
                                       .n_retains = 2,
                                       .autoload = true,
                                       .compression = turn % 2 == 0}),
                 {.trigger = {1, "iteration"}});
  trainer.run();
}

/// A process of this program that runs the test above.
class Victim {
 public:
  Victim(const std::string& folder, std::int64_t turn)
      : process_(
            "KilledSnapshot.IsWrittenByAProcessThatIsKilled",
            {"RENSA_TEST_KILLED=" + folder, "RENSA_TEST_KILLED_TURN=" + std::to_string(turn)}) {}

  /// The number of its first iteration, once it has begun; none where it ends before.
  std::optional<std::int64_t> began() {
    // gtest's own lines stand around it.
    std::optional<std::string> text = process_.read_until("\nbegan ");
    if (text) text = process_.read_until(", iterations to come\n");
    if (!text) return std::nullopt;
    return std::atoll(text->c_str() + text->find("\nbegan ") + 7);
  }
  void kill() { process_.kill(); }

 private:
  testing::ChildProcess process_;
};

/// The snapshots in a folder by their iterations, each read whole; counts the temporary files.
std::vector<std::int64_t> whole_files(const std::string& folder, int& temporaries) {
  std::vector<std::int64_t> iterations;
  temporaries = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::string name = entry.path().filename().string();
    if (name.ends_with(".tmp")) {
      ++temporaries;
      continue;
    }
    std::int64_t iteration = -1;
    Large model;
    EXPECT_NO_THROW(serializers::load_npz(entry.path().string(),
                                          [&](Visitor& v) { v("iteration", iteration); },
                                          {.strict = false, .path = "updater"}));
    EXPECT_NO_THROW(
        serializers::load_npz(entry.path().string(), model, {.path = "updater/model:main"}));
    EXPECT_EQ(name, "snapshot_iter_" + std::to_string(iteration));
    EXPECT_TRUE((model.w.array() == static_cast<float>(iteration)).all().item<bool>()) << name;
    iterations.push_back(iteration);
  }
  std::ranges::sort(iterations);
  return iterations;
}

/// Until a process that began with that iteration has written a file.
void wait_for_file(const std::string& folder, std::int64_t first) {
  auto is_there = [&](std::int64_t iteration) {
    return fs::exists(folder + "/snapshot_iter_" + std::to_string(iteration));
  };
  for (int tries = 0; tries < 100000; ++tries) {
    // The first one goes when there are two more.
    if (is_there(first) || is_there(first + 1) || is_there(first + 2)) return;
    ::usleep(200);
  }
}

TEST(KilledSnapshot, NeverLosesTheLatestWholeFile) {
  const char* given = std::getenv("RENSA_TEST_KILLS");
  int kills = given ? std::atoi(given) : testing::quick() ? 6 : 30, with_temporary = 0;
  testing::TemporaryFolder folder;
  std::string out = folder / "out";
  fs::create_directories(out);
  std::mt19937 random(static_cast<unsigned>(::getpid()));
  std::int64_t latest = 0;
  for (int turn = 0; turn < kills; ++turn) {
    SCOPED_TRACE(turn);
    Victim victim(out, turn);
    std::optional<std::int64_t> first = victim.began();
    ASSERT_TRUE(first.has_value());
    EXPECT_EQ(*first, latest + 1);  // it goes on from the latest file
    if (turn % 2 == 1) wait_for_file(out, *first);
    std::uniform_int_distribution<int> microseconds(0, 3000);
    ::usleep(static_cast<useconds_t>(microseconds(random)));
    victim.kill();
    int temporaries = 0;
    std::vector<std::int64_t> files = whole_files(out, temporaries);
    EXPECT_LE(temporaries, 1);  // the ones before were removed
    with_temporary += temporaries;
    if (files.empty()) continue;
    EXPECT_GE(files.back(), latest);
    // A process that wrote two had removed the old ones behind the first.
    EXPECT_LE(files.back() > *first ? files.size() : 0, 3u);
    latest = files.back();
  }
  EXPECT_GE(latest, kills / 2);
  EXPECT_GT(with_temporary, kills < 20 ? -1 : 0);  // some were hit while they wrote
  std::printf("%d kills, %d of them in the middle of a file; %d iterations\n", kills,
              with_temporary, static_cast<int>(latest));
}

/// A run of six iterations that writes a file after each.
class UnwritableFolder : public ::testing::Test {
 protected:
  Trainer make_trainer(const extensions::SnapshotOptions& options,
                       std::function<void(Trainer&)> at_third) {
    optimizer_.setup(model_);
    iterators::SerialIterator iterator(testing::line_data(4), 2, {.seed = 1});
    Trainer trainer(StandardUpdater(iterator, optimizer_), {6, "iteration"}, out_);
    trainer.extend(
        [at_third](Trainer& t) {
          if (t.updater().iteration() == 3) at_third(t);
        },
        {.name = "third", .priority = 300});
    trainer.extend(extensions::snapshot(options), {.trigger = {1, "iteration"}});
    return trainer;
  }
  testing::Line model_;
  optimizers::MomentumSGD optimizer_{0.01};
  testing::TemporaryFolder folder_;
  std::string out_ = folder_ / "out";
};

TEST_F(UnwritableFolder, IsAFileBeforeTheRun) {
  testing::write_file(out_, "a file");
  Trainer trainer = make_trainer({}, [](Trainer&) {});
  EXPECT_THAT(testing::thrown<SerializationError>([&] { trainer.run(); }),
              AllOf(HasSubstr("the folder \"" + out_), HasSubstr("cannot be made")));
  EXPECT_EQ(testing::read_file(out_), "a file");
}

TEST_F(UnwritableFolder, BecomesAFileDuringTheRun) {
  for (int turn : {0, 1, 2}) {
    fs::remove_all(out_);
    Trainer trainer = make_trainer({.writer = writer_of(turn)}, [](Trainer& t) {
      fs::remove_all(t.out() + ".away");
      fs::rename(t.out(), t.out() + ".away");
      testing::write_file(t.out(), "a file");
    });
    std::string message = testing::thrown<SerializationError>([&] { trainer.run(); });
    EXPECT_THAT(message, HasSubstr("snapshot: cannot write " + out_ + "/snapshot_iter_"));
    if (turn > 0) continue;  // files of before may be on their way
    EXPECT_THAT(message, HasSubstr("snapshot_iter_3: Not a directory"));
    EXPECT_TRUE(fs::exists(out_ + ".away/snapshot_iter_1"));
  }
}

TEST_F(UnwritableFolder, VanishesDuringTheRunAndComesBack) {
  Trainer trainer = make_trainer({.keep_going = true}, [](Trainer& t) { fs::remove_all(t.out()); });
  trainer.extend(
      [](Trainer& t) {
        if (t.updater().iteration() == 4) fs::create_directories(t.out());
      },
      {.name = "fourth", .priority = -200});
  ::testing::internal::CaptureStderr();
  trainer.run();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("cannot write " + out_ + "/snapshot_iter_3: No such file"),
                    HasSubstr("cannot write " + out_ + "/snapshot_iter_4: No such file")));
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(out_)) files.push_back(entry.path().filename());
  std::ranges::sort(files);
  EXPECT_THAT(files, ElementsAre("snapshot_iter_5", "snapshot_iter_6"));
}

TEST_F(UnwritableFolder, IsOnAFullDisk) {
  for (int turn : {0, 1, 2}) {
    fs::remove_all(out_);
    Trainer trainer = make_trainer({.writer = writer_of(turn)}, [](Trainer& t) {
      fs::create_symlink("/dev/full", t.out() + "/snapshot_iter_3");
    });
    EXPECT_THAT(
        testing::thrown<SerializationError>([&] { trainer.run(); }),
        HasSubstr("snapshot: cannot write " + out_ + "/snapshot_iter_3: No space left on device"));
    fs::remove(out_ + "/snapshot_iter_3");
    testing::Line read;
    serializers::load_npz(out_ + "/snapshot_iter_2", read, {.path = "updater/model:main"});
    EXPECT_NE(read.w.item<double>(), 0);
  }
}

}  // namespace
}  // namespace rensa::training

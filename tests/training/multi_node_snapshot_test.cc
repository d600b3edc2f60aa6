// Runs of several ranks that are stopped, and go on from one file.
#include "rensa/training/extensions/multi_node_snapshot.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "rensa/array/agreement.h"
#include "rensa/array/io.h"
#include "rensa/array/npy.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/data/multithread_iterator.h"
#include "rensa/data/scatter_dataset.h"
#include "rensa/functions/functions.h"
#include "rensa/links/linear.h"
#include "rensa/links/normalization_links.h"
#include "rensa/optimizers/multi_node_optimizer.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/serializers/npz.h"
#include "rensa/training/extensions/log_report.h"
#include "rensa/training/extensions/multi_node_evaluator.h"
#include "rensa/training/trainer.h"
#include "tests/file_size_limit.h"
#include "tests/ranks.h"
#include "tests/replace_entry.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"

namespace rensa::training {
namespace {

namespace fs = std::filesystem;
using extensions::SnapshotOptions;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Texts = std::vector<std::string>;
namespace snapshot_writers = extensions::snapshot_writers;

/// What its normalization keeps is each rank's own.
struct Net : Chain<Net> {
  L::Linear l1{6, 8}, l2{8, 3};
  L::BatchNormalization norm{8};
  void members(Visitor& v) override { v("l1", l1), v("norm", norm), v("l2", l2); }
  Variable operator()(const Variable& x, const Variable& t) const {
    Variable loss = F::softmax_cross_entropy(l2(F::relu(norm(l1(x)))), t);
    report({{"loss", loss}}, *this);
    return loss;
  }
};

/// 24 examples of 3 classes; what is random in them is drawn anew each time.
Dataset examples() {
  return Dataset(24, [](std::int64_t i, RandomStream& random) {
    Array x = (xp::arange(6, float32, cpu()) * static_cast<float>(i * 37 % 101)) % 7.f;
    return Columns{x + static_cast<float>(random.uniform()),
                   xp::array(static_cast<std::int64_t>(i % 3), cpu())};
  });
}

Iterator serial(const Dataset& part, int rank) {
  return iterators::SerialIterator(part, 5, {.seed = 7 + static_cast<std::uint64_t>(rank)});
}
Iterator threaded(const Dataset& part, int rank) {
  return iterators::MultithreadIterator(
      part, 5, {.seed = 7 + static_cast<std::uint64_t>(rank), .n_threads = 2});
}

/// What is there when a run begins and when it is over.
struct Outcome {
  std::int64_t first = 0, last = 0;
  double first_epoch_detail = 0;
  Texts first_model, model, losses, log;
};

Texts text_of(Link& model) {
  serializers::NpzContent content(model);
  Texts texts;
  for (const auto& [name, npy] : content.entries) texts.push_back(name + npy);
  return texts;
}

/// Notes what a run begins with.
struct Begin final : Extension {
  Begin(Outcome* o, Link& m) : outcome(o), model(&m) {}
  void initialize(Trainer& trainer) override {
    outcome->first = trainer.updater().iteration();
    outcome->first_epoch_detail = trainer.updater().epoch_detail();
    outcome->first_model = text_of(*model);
  }
  void operator()(Trainer& trainer) override {
    outcome->losses.push_back(
        fmt::format("{}", trainer.observation().at("main/loss").item<double>()));
  }
  Outcome* outcome;
  Link* model;
};

class MultiNodeSnapshotTest : public ::testing::Test {
 protected:
  struct Run {
    int size = 2;
    std::int64_t iterations = 6;
    SnapshotOptions options = {.autoload = true};
    Trigger trigger = {3, "iteration"};
    Iterator (*iterator)(const Dataset&, int) = serial;
    bool sharded = false;
    bool plain = false;  // Snapshot, in a group of one
    std::string folder = "out";
    /// What else there is of a rank's trainer, and what is done with it.
    std::function<void(Trainer&, const Communicator&)> extend = {};
    std::function<void(Trainer&, const Communicator&)> run = [](Trainer& t, const Communicator&) {
      t.run();
    };
  };

  /// Each rank has a folder of its own: there is no disk that they share.
  std::string folder_of(const Run& run, int rank) const {
    return folder_ / (run.folder + std::to_string(rank));
  }

  std::vector<Outcome> outcomes_of(const Run& run) {
    std::vector<Outcome> outcomes(static_cast<std::size_t>(run.size));
    testing::run_ranks(run.size, [&](const Communicator& c) {
      Outcome& outcome = outcomes[static_cast<std::size_t>(c.rank())];
      Net model = start_;
      Optimizer optimizer = optimizers::Adam();
      optimizer.setup(model);
      create_multi_node_optimizer(optimizer, c, {.sharded = run.sharded});
      auto part = datasets::scatter_dataset(examples(), c, {.shuffle = true, .seed = 1});
      StandardUpdater updater(run.iterator(part, c.rank()), optimizer);
      Trainer trainer(updater, {run.iterations, "iteration"}, folder_of(run, c.rank()));
      iterators::SerialIterator test(part, 4, {.repeat = false, .shuffle = false, .seed = 1});
      trainer.extend(extensions::MultiNodeEvaluator(extensions::Evaluator(test, model), c),
                     {.trigger = {2, "iteration"}});
      trainer.extend(Begin(&outcome, model), {.name = "begin"});
      if (c.rank() == 0) {
        trainer.extend(extensions::LogReport({.trigger = {1, "iteration"}, .filename = ""}));
      }
      if (run.extend) run.extend(trainer, c);
      if (run.plain) trainer.extend(extensions::snapshot(run.options), {.trigger = run.trigger});
      else
        trainer.extend(extensions::multi_node_snapshot(c, run.options), {.trigger = run.trigger});
      run.run(trainer, c);
      outcome.last = updater.iteration();
      outcome.model = text_of(model);
      if (c.rank() != 0) return;
      auto& log = static_cast<extensions::LogReport&>(trainer.get_extension("LogReport"));
      for (const auto& entry : log.log()) {
        for (const auto& [key, value] : entry.values) {
          outcome.log.push_back(fmt::format("{} {} {}", entry.iteration, key, value));
        }
      }
    });
    return outcomes;
  }

  /// outcomes_of(), and what stderr is told meanwhile.
  std::string told_by(const Run& run, std::vector<Outcome>* outcomes) {
    ::testing::internal::CaptureStderr();
    *outcomes = outcomes_of(run);
    return ::testing::internal::GetCapturedStderr();
  }

  std::string path_of(const Run& run, int iteration) const {
    return folder_of(run, 0) + "/snapshot_iter_" + std::to_string(iteration);
  }

  testing::TemporaryFolder folder_;
  Net start_;
};

Texts last_of(const Texts& all, std::size_t count) {
  return Texts(all.end() - static_cast<std::ptrdiff_t>(count), all.end());
}

TEST_F(MultiNodeSnapshotTest, AsManyRanksGoOnBitForBit) {
  for (auto iterator : {serial, threaded}) {
    for (int size : {1, 2, 3}) {
      SCOPED_TRACE(fmt::format("{} ranks, {}", size, iterator == serial ? "serial" : "threaded"));
      std::string name = fmt::format("{}_{}_", size, iterator == serial);
      Run run{.size = size, .iterator = iterator, .folder = name + "whole"};
      std::vector<Outcome> whole = outcomes_of(run);
      run.folder = name + "parts";
      run.iterations = 3;
      std::vector<Outcome> part = outcomes_of(run);
      run.iterations = 6;
      std::vector<Outcome> rest;
      std::string told = told_by(run, &rest);
      EXPECT_THAT(told, HasSubstr("goes on from " + path_of(run, 3) + "\n"));
      for (std::size_t rank = 0; rank < rest.size(); ++rank) {
        EXPECT_EQ(rest[rank].first, 3);
        EXPECT_EQ(rest[rank].first_model, part[rank].model);
        EXPECT_EQ(rest[rank].model, whole[rank].model);
        EXPECT_EQ(rest[rank].losses, last_of(whole[rank].losses, 3));
        EXPECT_EQ(rest[rank].log, whole[rank].log);
        EXPECT_EQ(rank == 0, fs::exists(fmt::format("{}/snapshot_iter_3",
                                                    folder_of(run, static_cast<int>(rank)))));
      }
    }
  }
}

TEST_F(MultiNodeSnapshotTest, AFileHoldsOnceWhatAllHave) {
  Run run{.size = 3, .iterations = 3};
  outcomes_of(run);
  xp::NpzFile file = xp::load_npz(path_of(run, 3));
  EXPECT_TRUE(file.contains("updater/model:main/l1/W"));
  EXPECT_TRUE(file.contains("updater/optimizer:main/l1/W/m"));
  for (const char* rank : {"1", "2"}) {
    auto has = [&](const std::string& name) {
      return file.contains(fmt::format("ranks/{}/{}", rank, name));
    };
    EXPECT_FALSE(has("updater/model:main/l1/W"));
    EXPECT_FALSE(has("updater/optimizer:main/l1/W/m"));
    EXPECT_TRUE(has("updater/model:main/norm/avg_mean"));
    EXPECT_TRUE(has("updater/iterator:main/seed"));
    EXPECT_FALSE(has("updater/iterator:main/current_position"));
    EXPECT_TRUE(has("_lacks/extensions/LogReport/_log"));
  }
}

TEST_F(MultiNodeSnapshotTest, AnotherNumberOfRanks) {
  for (auto [before, after] : {std::pair(2, 3), std::pair(3, 1), std::pair(1, 2)}) {
    SCOPED_TRACE(fmt::format("{} ranks, then {}", before, after));
    Run run{.size = before, .iterations = 4, .trigger = {4, "iteration"}};
    run.folder = std::to_string(before);
    std::vector<Outcome> part = outcomes_of(run), rest;
    run.size = after, run.iterations = 6;
    std::string told = told_by(run, &rest);
    EXPECT_THAT(told, HasSubstr(fmt::format("snapshot_iter_4, of {} rank{} where there {} {} now: "
                                            "the epoch under way begins anew\n",
                                            before, before == 1 ? "" : "s",
                                            after == 1 ? "is" : "are", after)));
    EXPECT_EQ(std::ranges::count(told, '\n'), 1);
    // Batches of 5, of 12, 8 or 24 examples.
    double epochs = before == 2 ? 1 : before == 3 ? 2 : 0;
    for (const Outcome& outcome : rest) {
      EXPECT_EQ(outcome.first, 4);
      EXPECT_EQ(outcome.first_epoch_detail, epochs);
      EXPECT_EQ(outcome.first_model, part[0].model);
      EXPECT_EQ(outcome.last, 6);
      EXPECT_EQ(outcome.losses.size(), 2U);
    }
    Texts begun(rest[0].log.begin(),
                rest[0].log.begin() + static_cast<std::ptrdiff_t>(part[0].log.size()));
    EXPECT_EQ(begun, part[0].log);
    EXPECT_GT(rest[0].log.size(), begun.size());
  }
}

TEST_F(MultiNodeSnapshotTest, StatesThatAreSharded) {
  Run run{.sharded = true, .folder = "whole"};
  std::vector<Outcome> whole = outcomes_of(run);
  run.folder = "parts";
  run.iterations = 3;
  outcomes_of(run);
  EXPECT_FALSE(xp::load_npz(path_of(run, 3)).contains("ranks/1/updater/optimizer:main/l1/W/m"));
  run.iterations = 6;
  std::vector<Outcome> rest = outcomes_of(run);
  for (std::size_t rank = 0; rank < rest.size(); ++rank) {
    EXPECT_EQ(rest[rank].first, 3);
    EXPECT_EQ(rest[rank].model, whole[rank].model);
  }
  run.size = 3, run.iterations = 7;
  for (const Outcome& outcome : outcomes_of(run)) EXPECT_EQ(outcome.first, 6);
}

/// Each example once, whatever had come of the epoch under way.
TEST_F(MultiNodeSnapshotTest, AnEpochThatBeginsAnewIsAWholeOne) {
  testing::TemporaryFolder folder;
  for (int size : {2, 3}) {
    std::mutex mutex;
    std::multiset<std::int64_t> seen;
    testing::run_ranks(size, [&](const Communicator& c) {
      Net model = start_;
      Optimizer optimizer = optimizers::SGD(0.1);
      optimizer.setup(model);
      create_multi_node_optimizer(optimizer, c);
      Dataset numbered(24, [&](std::int64_t i) {
        if (size == 3) {
          std::lock_guard lock(mutex);
          seen.insert(i);
        }
        return Columns{xp::full({6}, i, float32, cpu()), xp::array(i % 3, cpu())};
      });
      auto part = datasets::scatter_dataset(numbered, c, {.shuffle = true, .seed = 1});
      Trainer trainer(StandardUpdater(iterators::SerialIterator(part, 4), optimizer),
                      {size == 2 ? 4 : 6, "iteration"}, folder / std::to_string(c.rank()));
      trainer.extend(extensions::multi_node_snapshot(c, {.autoload = true}),
                     {.trigger = {4, "iteration"}});
      trainer.run();
    });
    if (size == 2) continue;
    EXPECT_EQ(seen.size(), 24U);
    EXPECT_EQ(std::set<std::int64_t>(seen.begin(), seen.end()).size(), 24U);
  }
}

TEST_F(MultiNodeSnapshotTest, FilesOfSnapshot) {
  // One rank's, read by one and by two.
  Run plain{.size = 1, .plain = true, .folder = "whole"};
  Outcome whole = outcomes_of(plain)[0];
  plain.iterations = 3;
  for (int size : {1, 2}) {
    plain.folder = fmt::format("plain{}_", size);
    outcomes_of(plain);
    Run rest = plain;
    rest.size = size, rest.iterations = 6, rest.plain = false;
    std::vector<Outcome> outcomes = outcomes_of(rest);
    EXPECT_EQ(outcomes[0].first, 3);
    EXPECT_EQ(outcomes[0].last, 6);
    EXPECT_EQ(outcomes[0].model == whole.model, size == 1);
  }
  // Of one rank and of two, read by Snapshot.
  for (int size : {1, 2}) {
    Run run{.size = size, .iterations = 3, .folder = fmt::format("ranks{}_", size)};
    Outcome part = outcomes_of(run)[0];
    run.size = 1, run.iterations = 6, run.plain = true;
    std::vector<Outcome> outcomes;
    std::string told = told_by(run, &outcomes);
    EXPECT_EQ(outcomes[0].first, 3);
    EXPECT_EQ(outcomes[0].first_model, part.model);
    EXPECT_EQ(outcomes[0].model == whole.model, size == 1);
    EXPECT_EQ(told.find("of 2 ranks where there is 1 now") != told.npos, size == 2);
  }
}

TEST_F(MultiNodeSnapshotTest, AFileThatOneRankCannotReadIsLeftOutByAll) {
  Run run{.iterations = 6};
  outcomes_of(run);
  testing::replace_entry(path_of(run, 6), "ranks/1/updater/iterator:main/seed.npy", "nonsense");
  std::vector<Outcome> rest;
  run.iterations = 7;
  std::string told = told_by(run, &rest);
  EXPECT_THAT(told, AllOf(HasSubstr("snapshot_iter_6 is left out: "), HasSubstr("rank 1"),
                          HasSubstr("goes on from " + path_of(run, 3))));
  for (const Outcome& outcome : rest) EXPECT_EQ(outcome.first, 3);

  // None at all.
  fs::resize_file(path_of(run, 3), 100);
  fs::resize_file(path_of(run, 6), 100);
  run.run = [](Trainer& t, const Communicator&) {
    EXPECT_THAT(testing::thrown<SerializationError>([&] { t.run(); }),
                HasSubstr("none of the files to go on from can be read"));
  };
  told_by(run, &rest);
}

TEST_F(MultiNodeSnapshotTest, AFileThatCannotBeWrittenIsAnErrorOfAll) {
  for (bool full : {false, true}) {
    for (bool keep_going : {false, true}) {
      SCOPED_TRACE(fmt::format("full {}, keep_going {}", full, keep_going));
      Run run{.options = {.compression = false, .keep_going = keep_going}};
      run.folder = fmt::format("{}{}_", full, keep_going);
      run.extend = [&](Trainer& trainer, const Communicator& c) {
        if (full || c.rank() != 0) return;
        trainer.extend(
            [](Trainer& t) {
              if (t.updater().iteration() == 2) fs::rename(t.out(), t.out() + ".away");
            },
            {.name = "away"});
      };
      if (!keep_going) {
        run.run = [&](Trainer& t, const Communicator&) {
          EXPECT_THAT(testing::thrown<SerializationError>([&] { t.run(); }),
                      HasSubstr(path_of(run, 3)));
        };
      }
      std::vector<Outcome> outcomes;
      std::string told;
      {
        std::unique_ptr<testing::FileSizeLimit> limit;
        if (full) limit = std::make_unique<testing::FileSizeLimit>(6000);
        told = told_by(run, &outcomes);
      }
      for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.last, keep_going ? 6 : 3);
      std::string line = "the run goes on without a file: ";
      std::size_t first = told.find(line);
      EXPECT_EQ(first != told.npos, keep_going);
      if (keep_going) {
        // One of the third iteration and one of the sixth.
        std::size_t second = told.find(line, first + 1);
        ASSERT_NE(second, told.npos);
        EXPECT_EQ(told.find(line, second + 1), told.npos);
      }
    }
  }
}

TEST_F(MultiNodeSnapshotTest, AWriterThatIsAThread) {
  Run run{.options = {.writer = snapshot_writers::ThreadWriter()}, .trigger = {1, "iteration"}};
  run.extend = [&](Trainer& trainer, const Communicator& c) {
    if (c.rank() != 0) return;
    trainer.extend(
        [](Trainer& t) {
          if (t.updater().iteration() == 2) fs::rename(t.out(), t.out() + ".away");
        },
        {.name = "away"});
  };
  run.run = [&](Trainer& t, const Communicator&) {
    EXPECT_THAT(testing::thrown<SerializationError>([&] { t.run(); }), HasSubstr("snapshot_iter_"));
  };
  std::vector<Outcome> outcomes;
  told_by(run, &outcomes);
  EXPECT_EQ(outcomes[0].last, outcomes[1].last);
  EXPECT_LT(outcomes[0].last, 6);
}

/// A signal that one rank alone gets after its second iteration.
struct Signalled final : Extension {
  int agreed_signal(int own) override { return updates == 2 ? SIGTERM : own; }
  void operator()(Trainer&) override { ++updates; }
  int updates = 0;
};

TEST_F(MultiNodeSnapshotTest, ASignalOfOneEndsTheRunOfAll) {
  Run run{.folder = "whole"};
  std::vector<Outcome> whole = outcomes_of(run);
  run.folder = "parts";
  run.extend = [](Trainer& trainer, const Communicator& c) {
    if (c.rank() == 1) trainer.extend(Signalled(), {.priority = 300});
  };
  run.run = [](Trainer& t, const Communicator&) {
    try {
      t.run();
      ADD_FAILURE() << "not interrupted";
    } catch (const Interrupted& interrupted) {
      EXPECT_EQ(interrupted.signal(), SIGTERM);
    }
  };
  std::vector<Outcome> part, rest;
  std::string told = told_by(run, &part);
  EXPECT_THAT(told, HasSubstr(path_of(run, 2) + " has the run up to here"));
  for (const Outcome& outcome : part) EXPECT_EQ(outcome.last, 2);
  rest = outcomes_of({.folder = "parts", .extend = [](Trainer& trainer, const Communicator& c) {
                        auto nothing = [](Trainer&) {};
                        if (c.rank() == 1) trainer.extend(nothing, {.name = "extension"});
                      }});
  for (std::size_t rank = 0; rank < rest.size(); ++rank) {
    EXPECT_EQ(rest[rank].first, 2);
    EXPECT_EQ(rest[rank].model, whole[rank].model);
  }
}

TEST_F(MultiNodeSnapshotTest, AnErrorWaitsForNobody) {
  for (int failing : {0, 1}) {
    Run run{.options = {.snapshot_on_error = true}, .trigger = {2, "iteration"}};
    run.folder = fmt::format("failing{}_", failing);
    run.extend = [&](Trainer& trainer, const Communicator& c) {
      auto fail = [](Trainer& t) {
        if (t.updater().iteration() == 3) throw IndexError("the third");
      };
      if (c.rank() == failing) trainer.extend(fail, {.name = "fail"});
    };
    run.run = [&](Trainer& t, const Communicator& c) {
      if (c.rank() == failing) {
        EXPECT_THROW(t.run(), IndexError);
      } else {
        EXPECT_THROW(t.run(), CommunicationError);
      }
    };
    std::vector<Outcome> outcomes;
    told_by(run, &outcomes);
    EXPECT_TRUE(xp::load_npz(path_of(run, 2)).contains("ranks/size"));
    xp::NpzFile last = xp::load_npz(path_of(run, 3));
    EXPECT_TRUE(last.contains("updater/iteration"));
    EXPECT_FALSE(last.contains("ranks/size"));
    EXPECT_FALSE(fs::exists(folder_of(run, 1) + "/snapshot_iter_3"));
  }
}

TEST_F(MultiNodeSnapshotTest, AnErrorLeavesNoFileThatLacksStates) {
  Run run{.options = {.snapshot_on_error = true}, .trigger = {2, "iteration"}, .sharded = true};
  run.extend = [&](Trainer& trainer, const Communicator&) {
    auto fail = [](Trainer& t) {
      if (t.updater().iteration() == 3) throw IndexError("the third");
    };
    trainer.extend(fail, {.name = "fail"});
  };
  run.run = [&](Trainer& t, const Communicator&) { EXPECT_THROW(t.run(), Error); };
  std::vector<Outcome> outcomes;
  EXPECT_THAT(told_by(run, &outcomes), HasSubstr("no " + path_of(run, 3)));
  EXPECT_FALSE(fs::exists(path_of(run, 3)));
  EXPECT_TRUE(fs::exists(path_of(run, 2)));
}

TEST_F(MultiNodeSnapshotTest, OptionsOfTheRanks) {
  // What rank 0 says counts.
  Run run{.run = [](Trainer& t, const Communicator& c) {
    t.extend(extensions::multi_node_snapshot(
                 c, {.filename = "if_{.updater.iteration}",
                     .condition = c.rank() == 0 ? std::function([] { return false; }) : nullptr}),
             {.trigger = {1, "iteration"}});
    t.run();
  }};
  outcomes_of(run);
  EXPECT_FALSE(fs::exists(folder_of(run, 0) + "/if_1"));
  EXPECT_TRUE(fs::exists(path_of(run, 3)));

  run.run = [](Trainer& t, const Communicator& c) {
    t.extend(extensions::multi_node_snapshot(c, {.filename = "other", .autoload = c.rank() == 0}));
    EXPECT_THAT(testing::thrown<ValueError>([&] { t.run(); }),
                AllOf(HasSubstr("autoload = true"), HasSubstr("autoload = false")));
  };
  std::vector<Outcome> outcomes;
  told_by(run, &outcomes);
  EXPECT_THROW(extensions::multi_node_snapshot(create_thread_communicators(1)[0], {.n_retains = 0}),
               ValueError);
}

}  // namespace
}  // namespace rensa::training

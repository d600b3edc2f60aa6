// A run of Chainer itself (three epochs of the guide's network, in the folder "chainer" of the data
// sets, made by the script beside its files) goes on here from its snapshot as it went on there;
// and tests/answers/check_chainer_resume.py lets Chainer go on from one of this library.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "rensa/core/environment.h"
#include "rensa/data/data.h"
#include "rensa/functions/functions.h"
#include "rensa/links/links.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/serializers/npz.h"
#include "rensa/training/training.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"

namespace rensa::training {
namespace {

struct MLP : Chain<MLP> {
  L::Linear l1{50}, l2{50}, l3{10};
  void members(Visitor& v) override { v("l1", l1), v("l2", l2), v("l3", l3); }
  Variable operator()(const Variable& x) const { return l3(F::relu(l2(F::relu(l1(x))))); }
};

std::string chainer_folder() {
  return environment::text("RENSA_DATASET_ROOT").value_or("") + "/chainer/";
}

nlohmann::json read_json(const std::string& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

datasets::TupleDataset first(const datasets::TupleDataset& examples, std::int64_t n) {
  const Columns& columns = *examples.columns();
  return datasets::TupleDataset(columns[0][Slice(0, n)], columns[1][Slice(0, n)]);
}

/// The run of chainer/run.py.
struct ChainerRun {
  L::Classifier<MLP> model{MLP()};
  std::vector<double> losses;

  Trainer trainer(const std::string& out) {
    optimizers::Adam optimizer;
    optimizer.setup(model);
    datasets::TrainTest data = datasets::get_mnist();
    iterators::SerialIterator train(first(data.train, 5000), 100, {.shuffle = false});
    iterators::SerialIterator test(first(data.test, 1000), 100,
                                   {.repeat = false, .shuffle = false});
    Trainer trainer(StandardUpdater(train, optimizer), {3, "epoch"}, out);
    trainer.extend(
        [this](Trainer& t) { losses.push_back(t.observation().at("main/loss").item<double>()); },
        {.name = "keep", .trigger = {1, "iteration"}});
    trainer.extend(extensions::Evaluator(test, model));
    trainer.extend(extensions::ExponentialShift("alpha", 0.9), {.trigger = {1, "epoch"}});
    trainer.extend(extensions::LogReport());
    trainer.extend(extensions::snapshot({.filename = "snapshot_epoch_{.updater.epoch}"}),
                   {.trigger = {2, "epoch"}});
    trainer.extend(extensions::observe_lr());
    trainer.extend(extensions::PrintReport({"epoch", "main/loss", "lr"}, {.out = &printed_}));
    return trainer;
  }

 private:
  std::ostringstream printed_;
};

/// "main/loss" and the like, of the log's entries from `from` on.
void expect_log(Trainer& trainer, std::size_t from) {
  const auto& log = static_cast<extensions::LogReport&>(trainer.get_extension("LogReport")).log();
  nlohmann::json chainers = read_json(chainer_folder() + "log");
  ASSERT_EQ(log.size(), chainers.size());
  for (std::size_t i = 0; i < log.size(); ++i) {
    EXPECT_EQ(log[i].epoch, chainers[i]["epoch"]);
    EXPECT_EQ(log[i].iteration, chainers[i]["iteration"]);
    for (const auto& [key, value] : chainers[i].items()) {
      if (key == "epoch" || key == "iteration" || key == "elapsed_time") continue;
      double exact = i < from ? 1e-12 : 1e-5;  // read from the file, or computed
      EXPECT_NEAR(log[i].values.at(key), value.get<double>(), exact) << key << " of entry " << i;
    }
  }
}

void expect_losses(const std::vector<double>& losses, std::size_t from) {
  nlohmann::json chainers = read_json(chainer_folder() + "losses.json");
  ASSERT_EQ(from + losses.size(), chainers.size());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    EXPECT_NEAR(losses[i], chainers[from + i].get<double>(), 1e-5) << "iteration " << from + i;
  }
}

class ChainerRunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (datasets::find_mnist().empty() ||
        !std::filesystem::exists(chainer_folder() + "snapshot_epoch_2")) {
      GTEST_SKIP() << "needs MNIST and chainer/ in RENSA_DATASET_ROOT";
    }
  }
  testing::TemporaryFolder folder_;
};

TEST_F(ChainerRunTest, FromTheBeginningHasTheSameNumbers) {
  ChainerRun run;
  std::string out = environment::text("RENSA_TEST_CHAINER_FOLDER").value_or(folder_ / "out");
  Trainer trainer = run.trainer(out);
  serializers::load_npz(chainer_folder() + "model_start.npz", run.model);
  trainer.run();
  expect_losses(run.losses, 0);
  expect_log(trainer, 0);
  EXPECT_TRUE(std::filesystem::exists(out + "/snapshot_epoch_2"));
}

TEST_F(ChainerRunTest, FromItsSnapshotGoesOn) {
  ChainerRun run;
  Trainer trainer = run.trainer(folder_ / "out");
  serializers::load_npz(chainer_folder() + "snapshot_epoch_2", trainer);
  trainer.run();
  expect_losses(run.losses, 100);
  expect_log(trainer, 2);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out/snapshot_epoch_2"));  // of an epoch before
}

}  // namespace
}  // namespace rensa::training

// What ranks decide, and report, together.
#include "rensa/training/triggers/multi_node_triggers.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <vector>

#include "rensa/array/routines.h"
#include "rensa/data/iterator.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/serializers/npz.h"
#include "rensa/training/extensions/observation_aggregator.h"
#include "rensa/training/trainer.h"
#include "tests/ranks.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"
#include "tests/training/models.h"

namespace rensa::training {
namespace {

using extensions::ObservationAggregator;
using ::testing::ElementsAre;

/// Runs a trainer that observes values[k] as "value" in its k-th iteration, or nothing for NaN;
/// gives how many iterations there were.
std::int64_t run(const std::vector<double>& values, const Trigger& stop,
                 const std::function<void(Trainer&)>& extend = {}) {
  testing::TemporaryFolder folder;
  testing::Line model;
  optimizers::SGD optimizer(0.01);
  optimizer.setup(model);
  iterators::SerialIterator iterator(testing::line_data(4), 2, {.seed = 1});
  Trainer trainer(StandardUpdater(iterator, optimizer), stop, folder / "out");
  trainer.extend(
      [&](Trainer& t) {
        double value = values.at(static_cast<std::size_t>(t.updater().iteration() - 1));
        if (!std::isnan(value)) t.observation()["value"] = xp::array(value, cpu());
      },
      {.name = "observes", .priority = kPriorityWriter});
  if (extend) extend(trainer);
  trainer.run();
  return trainer.updater().iteration();
}

TEST(MultiNodeEarlyStoppingTrigger, DecidesByTheMean) {
  // By the second rank's alone it would be over after 3 iterations, by the first's never.
  const std::vector<std::vector<double>> values = {{9, 8, 7, 6, 5.9, 5.8, 5.7},
                                                   {1, 1, 1, 1.5, 2, 2, 2}};
  const triggers::EarlyStoppingOptions options = {.check_trigger = {1, "iteration"},
                                                  .monitor = "value",
                                                  .patience = 2,
                                                  .max_trigger = {7, "iteration"}};
  EXPECT_EQ(run(values[0], triggers::EarlyStoppingTrigger(options)), 7);
  EXPECT_EQ(run(values[1], triggers::EarlyStoppingTrigger(options)), 3);
  testing::run_ranks(2, [&](const Communicator& c) {
    triggers::MultiNodeEarlyStoppingTrigger trigger(c, options);
    EXPECT_EQ(run(values[static_cast<std::size_t>(c.rank())], trigger), 6);
  });
}

TEST(MultiNodeEarlyStoppingTrigger, RanksThatReportNothingDoNotCount) {
  const std::vector<double> values = {4, 3, 3, 3, 3, 3}, none(6, NAN);
  const triggers::EarlyStoppingOptions options = {.check_trigger = {1, "iteration"},
                                                  .monitor = "value",
                                                  .patience = 2,
                                                  .max_trigger = {6, "iteration"}};
  testing::run_ranks(3, [&](const Communicator& c) {
    triggers::MultiNodeEarlyStoppingTrigger trigger(c, options);
    EXPECT_EQ(run(c.rank() == 1 ? values : none, trigger), 4);
  });
}

TEST(ObservationAggregator, MeansAndOtherFunctionsOfAllRanks) {
  const std::vector<std::vector<double>> values = {{1, 2, 3, 4}, {5, NAN, 9, 8}};
  testing::run_ranks(2, [&](const Communicator& c) {
    std::vector<double> means, greatest;
    run(values[static_cast<std::size_t>(c.rank())], {4, "iteration"}, [&](Trainer& trainer) {
      auto max = [](const std::vector<double>& all) { return *std::ranges::max_element(all); };
      trainer.extend(ObservationAggregator(
          c, "value",
          {.aggregated_key = "max", .comm_trigger = {2, "iteration"}, .aggregator = max}));
      trainer.extend(ObservationAggregator(c, "value"));
      trainer.extend([&](Trainer& t) {
        means.push_back(t.observation().at("value").item<double>());
        auto found = t.observation().find("max");
        if (found != t.observation().end()) greatest.push_back(found->second.item<double>());
      });
    });
    EXPECT_THAT(means, ElementsAre(3, 2, 6, 6));
    EXPECT_THAT(greatest, ElementsAre(5, 9));
  });
}

TEST(ObservationAggregator, WhatIsNotExchangedYetLasts) {
  auto ends = create_thread_communicators(1);
  auto make = [&] {
    return ObservationAggregator(ends[0], "value", {.comm_trigger = {3, "iteration"}});
  };
  testing::TemporaryFolder folder;
  std::vector<double> means;
  for (bool rest : {false, true}) {
    auto values = rest ? std::vector<double>{0, 0, 30} : std::vector<double>{3, 6, 0};
    run(values, {rest ? 3 : 2, "iteration"}, [&](Trainer& trainer) {
      trainer.extend(make());
      trainer.extend([&](Trainer& t) {
        serializers::save_npz(folder / std::to_string(t.updater().iteration()), t);
        if (t.updater().iteration() == 3)
          means.push_back(t.observation().at("value").item<double>());
      });
      if (rest) serializers::load_npz(folder / "2", trainer);
    });
  }
  EXPECT_THAT(means, ElementsAre(13));
}

}  // namespace
}  // namespace rensa::training

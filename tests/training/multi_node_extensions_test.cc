// Extensions that find the means of all ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "rensa/array/communicator.h"
#include "rensa/array/manipulation.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/data/data.h"
#include "rensa/functions/functions.h"
#include "rensa/links/links.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/training/training.h"
#include "tests/ranks.h"
#include "tests/testing.h"
#include "tests/training/models.h"

namespace rensa {
namespace {

using ::testing::HasSubstr;

TEST(MultiNodeExtensions, PersistentsAreTheMeansOfAll) {
  Array all_x = (xp::arange(48 * 6, float32) * 37.f % 101.f * 0.02f - 1.f).reshape({48, 6});
  std::vector<Array> means(3);
  testing::run_ranks(3, [&](const Communicator& c) {
    L::BatchNormalization model(6);
    Array x = all_x[Slice(16 * c.rank(), 16 * (c.rank() + 1))];
    Optimizer own = optimizers::SGD(0.1);
    own.setup(model);
    training::Trainer trainer(
        training::StandardUpdater(
            iterators::SerialIterator(datasets::TupleDataset(x), 4, {.shuffle = false}), own,
            {.loss_func = [&](const Variables& in) { return F::sum(model(in[0])); }}),
        {1, "epoch"});
    std::vector<float> own_mean;
    trainer.extend(
        [&](training::Trainer&) { own_mean = model.avg_mean.to_vector<float>(); },
        {.name = "before", .trigger = {1, "epoch"}, .priority = training::kPriorityWriter + 2});
    trainer.extend(extensions::AllreducePersistent(model, c));
    trainer.run();
    std::vector<Array> all = c.allgather(xp::array(own_mean));
    EXPECT_FALSE(xp::array_equal(all[0], all[1]));
    EXPECT_TRUE(xp::allclose(model.avg_mean, (all[0] + all[1] + all[2]) / 3, 1e-6, 1e-7));
    means[static_cast<std::size_t>(c.rank())] = model.avg_mean.copy();
  });
  EXPECT_TRUE(xp::array_equal(means[0], means[1]));
  EXPECT_TRUE(xp::array_equal(means[0], means[2]));
  testing::run_ranks(2, [&](const Communicator& c) {
    L::BatchNormalization model(c.rank() + 2);
    Optimizer own = optimizers::SGD(0.1);
    own.setup(model);
    training::Trainer trainer(
        training::StandardUpdater(
            iterators::SerialIterator(datasets::TupleDataset(xp::ones({4, 2})), 4), own),
        {1, "epoch"});
    EXPECT_THAT(
        testing::thrown<ValueError>([&] { extensions::AllreducePersistent(model, c)(trainer); }),
        HasSubstr("avg_mean float32 (3,)"));
  });
}

TEST(MultiNodeExtensions, EvaluatorsReportTheMeansOfAll) {
  datasets::TupleDataset data = testing::line_data(12);
  testing::Line alone;
  alone.w.array().fill(0.5);
  auto all = extensions::Evaluator(
      iterators::SerialIterator(data, 3, {.repeat = false, .shuffle = false}), alone);
  double want = all.evaluate().at("main/loss");
  testing::run_ranks(4, [&](const Communicator& c) {
    testing::Line model;
    model.w.array().fill(0.5);
    auto part = datasets::scatter_dataset(data, c);
    extensions::MultiNodeEvaluator evaluator(
        extensions::Evaluator(
            iterators::SerialIterator(part, 3, {.repeat = false, .shuffle = false}), model),
        c);
    EXPECT_NEAR(evaluator.evaluate().at("main/loss"), want, 1e-5);
  });
}

}  // namespace
}  // namespace rensa

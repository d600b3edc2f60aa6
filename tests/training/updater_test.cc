// StandardUpdater: devices, converters, loss functions, capture; and a network that learns digits.
#include "rensa/training/updater.h"

#include <gmock/gmock.h>

#include <cmath>

#include "rensa/array/random_basics.h"
#include "rensa/core/error.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/serializers/npz.h"
#include "rensa/training/training.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"
#include "tests/training/models.h"

namespace rensa::training {
namespace {

using ::testing::HasSubstr;
using testing::Line;
using testing::line_data;

struct MLP : Chain<MLP> {
  L::Linear l1, l2;
  MLP(std::int64_t units, std::int64_t out) : l1(units), l2(out) {}
  void members(Visitor& v) override {
    v("l1", l1);
    v("l2", l2);
  }
  Variable operator()(const Variable& x) const { return l2(F::relu(l1(x))); }
};

TEST(StandardUpdater, MovesTheModelToItsDevice) {
  for (Device device : testing::test_devices()) {
    Line model;
    optimizers::SGD optimizer(0.001);
    optimizer.setup(model);
    StandardUpdater updater(iterators::SerialIterator(line_data(8), 4, {.shuffle = false}),
                            optimizer, {.device = device});
    EXPECT_EQ(model.w.device(), device);
    updater.update();
    // d/dw mean((w x - 2 x)^2) = -4 mean(x^2) at w = 0, x = 1 .. 4.
    EXPECT_NEAR(model.w.item<double>(), 0.001 * 4 * 7.5, 1e-6);
  }
}

TEST(StandardUpdater, ABatchInPartsGivesItsGradient) {
  for (Device device : testing::test_devices()) {
    for (bool captured : {false, true}) {
      for (int parts : {1, 2, 3, 8}) {
        Line model;
        optimizers::SGD optimizer(0.001);
        optimizer.setup(model);
        StandardUpdater updater(iterators::SerialIterator(line_data(8), 4, {.shuffle = false}),
                                optimizer,
                                {.device = device,
                                 .accumulate = parts,
                                 .capture = captured,
                                 .capture_options = {.replay_lists = true}});
        double w = 0;
        for (int i = 0; i < 12; ++i) {
          updater.update();
          // d/dw mean((w x - 2 x)^2) = 2 (w - 2) mean(x^2), x = 1 .. 4, then 5 .. 8.
          w -= 0.001 * 2 * (w - 2) * (i % 2 == 0 ? 7.5 : 43.5);
          EXPECT_NEAR(model.w.item<double>(), w, 1e-5) << parts << " on " << device.str();
        }
        if (captured) {
          EXPECT_GT(updater.capture_stats().replays, 5) << updater.capture_stats().last_fallback;
        }
      }
    }
  }
  Line model;
  optimizers::SGD optimizer;
  optimizer.setup(model);
  EXPECT_THROW(
      StandardUpdater(iterators::SerialIterator(line_data(8), 4), optimizer, {.accumulate = 0}),
      ValueError);
}

TEST(StandardUpdater, AnIterationOfSeveralUpdates) {
  for (Device device : testing::test_devices()) {
    auto train = [&](std::int64_t batch, StandardUpdaterOptions options) {
      Line model;
      optimizers::SGD optimizer(0.001);
      optimizer.setup(model);
      options.device = device;
      options.capture_options = {.replay_lists = true};
      if (batch == 8) {
        options.update_core = [&](const Variables& in) {
          for (std::int64_t i = 0; i < 8; i += 4) {
            Slice part(i, i + 4);
            optimizer.update(model, in[0][part], in[1][part]);
          }
        };
      }
      StandardUpdater updater(iterators::SerialIterator(line_data(16), batch, {.shuffle = false}),
                              optimizer, options);
      for (std::int64_t i = 0; i < 4 * 16 / batch; ++i) updater.update();
      EXPECT_EQ(updater.epoch(), 4);
      EXPECT_EQ(optimizer.t(), 16);
      if (options.capture) {
        EXPECT_GT(updater.capture_stats().replays, 3) << updater.capture_stats().last_fallback;
      }
      return model.w.item<float>();
    };
    float one_by_one = train(4, {});
    EXPECT_EQ(train(8, {}), one_by_one) << device.str();
    EXPECT_EQ(train(8, {.capture = true}), one_by_one) << device.str();
  }
}

TEST(StandardUpdater, OwnConverterAndLoss) {
  Line model;
  optimizers::SGD optimizer(0.001);
  optimizer.setup(model);
  int conversions = 0;
  StandardUpdaterOptions options;
  options.converter = [&](const Batch& batch, Device device) {
    ++conversions;
    return concat_examples(batch, device);
  };
  options.loss_func = [&](const Variables& columns) { return model(columns[0], columns[1]) * 2; };
  StandardUpdater updater(iterators::SerialIterator(line_data(8), 4, {.shuffle = false}), optimizer,
                          options);
  updater.update();
  EXPECT_EQ(conversions, 1);
  EXPECT_NEAR(model.w.item<double>(), 0.001 * 8 * 7.5, 1e-6);
}

TEST(StandardUpdater, NeedsAnOptimizerThatIsSetUp) {
  EXPECT_THROW(StandardUpdater(iterators::SerialIterator(line_data(8), 4), optimizers::SGD()),
               ValueError);
}

/// Two lines, whose models report.
struct TwoLines {
  Line a, b;
  optimizers::SGD of_a{0.001}, of_b{0.002};
  TwoLines() { of_a.setup(a), of_b.setup(b); }
  Named<Optimizer> optimizers() const { return {{"a", of_a}, {"b", of_b}}; }
  auto update_both() {
    return [this](const Variables& in) {
      of_a.update(a, in[0], in[1]);
      of_b.update(b, in[0], in[1]);
    };
  }
};

TEST(StandardUpdater, SeveralOptimizersByName) {
  for (Device device : testing::test_devices()) {
    for (bool captured : {false, true}) {
      TwoLines lines;
      StandardUpdater updater(iterators::SerialIterator(line_data(4), 4, {.shuffle = false}),
                              lines.optimizers(),
                              {.device = device,
                               .update_core = lines.update_both(),
                               .capture = captured,
                               .capture_options = {.replay_lists = true}});
      testing::TemporaryFolder folder;
      Trainer trainer(updater, {10, "iteration"}, folder / "out");
      std::vector<std::string> keys;
      trainer.extend([&](Trainer& t) {
        keys.clear();
        for (const auto& [key, value] : t.observation()) keys.push_back(key);
      });
      trainer.run();
      EXPECT_EQ(lines.a.w.device(), device);
      EXPECT_EQ(lines.b.w.device(), device);
      EXPECT_NEAR(lines.a.w.item<double>(), 2 * (1 - std::pow(1 - 0.002 * 7.5, 10)), 1e-5);
      EXPECT_NEAR(lines.b.w.item<double>(), 2 * (1 - std::pow(1 - 0.004 * 7.5, 10)), 1e-5);
      EXPECT_EQ(keys, (std::vector<std::string>{"a/loss", "b/loss"}));
      EXPECT_EQ(lines.of_a.epoch(), 10);
      EXPECT_EQ(lines.of_b.epoch(), 10);
      if (captured) {
        EXPECT_GT(updater.capture_stats().replays, 5) << updater.capture_stats().last_fallback;
      }
      EXPECT_EQ(updater.get_optimizer("b").state(), lines.of_b.state());
      std::vector<std::string> paths;
      for (const NamedParameter& p : updater.namedparams()) paths.push_back(p.path);
      EXPECT_EQ(paths, (std::vector<std::string>{"/a/w", "/b/w"}));
      EXPECT_THAT(testing::thrown<ValueError>([&] { (void)updater.optimizer(); }),
                  HasSubstr("no optimizer is named \"main\"; there are \"a\", \"b\""));
      EXPECT_THROW((void)updater.get_iterator("test"), ValueError);
    }
  }
}

/// A batch of each iterator: the columns of one come behind those of the other.
TEST(StandardUpdater, SeveralIteratorsByName) {
  for (Device device : testing::test_devices()) {
    for (bool captured : {false, true}) {
      Line model;
      optimizers::SGD optimizer(0.001);
      optimizer.setup(model);
      iterators::SerialIterator main(line_data(6), 3, {.shuffle = false});
      iterators::SerialIterator more(datasets::TupleDataset(xp::full({4}, 5.f, float32, cpu())), 2);
      Array seen = xp::zeros({}, float32, device);
      StandardUpdater updater({{"main", main}, {"more", more}}, optimizer,
                              {.device = device,
                               .loss_func =
                                   [&](const Variables& in) {
                                     EXPECT_EQ(in.size(), 3u);
                                     seen += in[2].array().sum() + in[1].array().sum();
                                     return model(in[0], in[1]);
                                   },
                               .capture = captured,
                               .capture_options = {.replay_lists = true}});
      for (int i = 0; i < 8; ++i) updater.update();
      // 4 epochs of main, whose t are 2 .. 12; 8 batches of two fives.
      EXPECT_EQ(seen.item<float>(), 4 * 42 + 8 * 10);
      EXPECT_EQ(main.epoch(), 4);
      EXPECT_EQ(more.epoch(), 4);
      EXPECT_EQ(optimizer.epoch(), 4);
      if (captured) {
        EXPECT_GT(updater.capture_stats().replays, 3) << updater.capture_stats().last_fallback;
      }
    }
  }
}

TEST(StandardUpdater, NamesThatAreWrong) {
  TwoLines lines;
  iterators::SerialIterator iterator(line_data(4), 4);
  auto message = [&](const Named<Iterator>& iterators, const Named<Optimizer>& optimizers,
                     const StandardUpdaterOptions& options) {
    return testing::thrown<ValueError>(
        [&] { StandardUpdater updater(iterators, optimizers, options); });
  };
  StandardUpdaterOptions both{.update_core = lines.update_both()};
  EXPECT_THAT(message({{"test", iterator}}, lines.of_a, {}), HasSubstr("named \"main\""));
  EXPECT_THAT(message({{"main", iterator}, {"main", iterator}}, lines.of_a, {}),
              HasSubstr("two iterators are named \"main\""));
  EXPECT_THAT(message(iterator, {{"a", lines.of_a}, {"a", lines.of_b}}, both),
              HasSubstr("two optimizers are named \"a\""));
  EXPECT_THAT(message(iterator, {{"", lines.of_a}}, both), HasSubstr("has no name"));
  EXPECT_THAT(message(iterator, Named<Optimizer>(std::vector<Named<Optimizer>::Entry>()), both),
              HasSubstr("give it an optimizer"));
  EXPECT_THAT(message(iterator, lines.optimizers(), {}), HasSubstr("update_core"));
  EXPECT_THAT(message(iterator, {{"a", lines.of_a}}, {}), HasSubstr("update_core"));
  both.accumulate = 2;
  EXPECT_THAT(message(iterator, lines.optimizers(), both), HasSubstr("accumulate"));
}

/// An updater of the user's own that takes several batches: each epoch is told of once.
TEST(UpdaterBody, SeveralBatchesInAnIteration) {
  struct Thrice final : UpdaterBody {
    using UpdaterBody::UpdaterBody;
    void update_core() override {
      for (int i = 0; i < 3; ++i) {
        Columns columns = concat_examples(next_batch(), cpu());
        optimizer().update([&] { return optimizer().target().invoke({columns[0], columns[1]}); });
      }
    }
  };
  Line model;
  optimizers::SGD optimizer(0.001);
  optimizer.setup(model);
  // Of four batches an epoch: the second update ends one by its first batch, the third by its
  // second.
  iterators::SerialIterator iterator(line_data(8), 2, {.repeat = true});
  Updater updater(std::make_shared<Thrice>(iterator, optimizer));
  std::vector<std::int64_t> epochs;
  for (int i = 0; i < 4; ++i) {
    updater.update();
    epochs.push_back(optimizer.epoch());
  }
  EXPECT_EQ(epochs, (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(optimizer.t(), 12);
  Updater ends(std::make_shared<Thrice>(
      iterators::SerialIterator(line_data(8), 2, {.repeat = false}), optimizer));
  ends.update();
  EXPECT_THAT(testing::thrown<ValueError>([&] { ends.update(); }),
              HasSubstr("the iterator \"main\" has come to its end"));
  EXPECT_EQ(ends.iteration(), 1);
}

TEST(StandardUpdater, CaptureGivesTheSameNumbers) {
  for (Device device : testing::test_devices()) {
    auto train = [&](bool capture) {
      xp::random::seed(1);
      auto model = L::Classifier(MLP(16, 10));
      model.to_device(device);
      optimizers::Adam optimizer;
      optimizer.setup(model);
      auto data = datasets::get_synthetic_digits(230, 10, 3);
      StandardUpdater updater(iterators::SerialIterator(data.train, 50, {.seed = 2}), optimizer,
                              {.device = device, .capture = capture});
      for (int i = 0; i < 20; ++i) updater.update();
      if (capture && device.is_cuda()) {
        EXPECT_EQ(updater.capture_stats().fallbacks, 0) << updater.capture_stats().last_fallback;
        EXPECT_GT(updater.capture_stats().replays, 10);
      }
      return model.predictor.l1.W.array().get();
    };
    EXPECT_TRUE(xp::array_equal(train(false), train(true)));
  }
}

/// Losses that look at where the training is, as a replay would not again.
TEST(StandardUpdater, ALossThatAsksForTheIterationStaysEager) {
  for (Device device : testing::test_devices()) {
    const std::pair<const char*, std::function<double(Trainer&)>> asks[] = {
        {"an updater for its iteration",
         [](Trainer& t) { return t.updater().iteration() < 8 ? 1.0 : 0.0; }},
        {"an iterator", [](Trainer& t) { return t.updater().epoch() < 2 ? 1.0 : 0.0; }},
        {"a trigger", [trigger = Trigger(5, "iteration")](Trainer& t) mutable {
           return trigger(t) ? 1.0 : 0.0;
         }}};
    for (const auto& [reason, weight] : asks) {
      auto train = [&, weight = weight, reason = reason](bool capture) {
        Line model;
        optimizers::SGD optimizer(1e-4);
        optimizer.setup(model);
        Trainer* running = nullptr;
        auto ask = weight;  // a trigger of its own
        auto loss = [&](const Variables& in) {
          return model(in[0], in[1]) * static_cast<float>(ask(*running));
        };
        iterators::SerialIterator iterator(line_data(16), 4, {.shuffle = false});
        StandardUpdater updater(iterator, optimizer,
                                {.device = device,
                                 .loss_func = loss,
                                 .capture = capture,
                                 .capture_options = {.replay_lists = true}});
        Trainer trainer(updater, {12, "iteration"}, "");
        running = &trainer;
        for (int i = 0; i < 12; ++i) updater.update();
        if (capture) {
          EXPECT_NE(updater.capture_stats().last_fallback.find(reason), std::string::npos)
              << updater.capture_stats().last_fallback;
          EXPECT_EQ(updater.capture_stats().replays, 0);
        }
        return model.w.item<float>();
      };
      EXPECT_EQ(train(false), train(true)) << reason;
    }
  }
}

TEST(StandardUpdater, SteadyIterationsWaitForNothing) {
  RENSA_NEEDS_GPUS(1);
  for (bool capture : {false, true}) {
    auto model = L::Classifier(MLP(16, 10));
    optimizers::Adam optimizer;
    optimizer.setup(model);
    auto data = datasets::get_synthetic_digits(500, 10, 3);
    StandardUpdater updater(iterators::SerialIterator(data.train, 50), optimizer,
                            {.device = gpu(0), .capture = capture});
    for (int i = 0; i < 30; ++i) updater.update();
    cuda::synchronize(gpu(0));
    std::int64_t waits = cuda::sync_count(), bytes = cuda::memory_pool(gpu(0)).total_bytes();
    std::int64_t allocations = cuda::memory_pool(gpu(0)).n_allocations();
    for (int i = 0; i < 50; ++i) updater.update();
    EXPECT_EQ(cuda::sync_count(), waits);
    EXPECT_EQ(cuda::memory_pool(gpu(0)).n_allocations(), allocations);
    EXPECT_EQ(cuda::memory_pool(gpu(0)).total_bytes(), bytes);
  }
}

TEST(Training, ANetworkLearnsTheGeneratedDigits) {
  for (Device device : testing::test_devices()) {
    xp::random::seed(0);
    testing::TemporaryFolder folder;
    auto model = L::Classifier(MLP(64, 10));
    optimizers::Adam optimizer;
    optimizer.setup(model);
    auto [train, test] = datasets::get_synthetic_digits(6000, 500);
    iterators::SerialIterator train_iter(train, 50, {.seed = 1});
    iterators::SerialIterator test_iter(test, 100, {.repeat = false, .shuffle = false});
    Trainer trainer(StandardUpdater(train_iter, optimizer, {.device = device}), {3, "epoch"},
                    folder.str());
    trainer.extend(extensions::Evaluator(test_iter, model, device));
    trainer.extend(extensions::LogReport());
    trainer.run();
    const auto& log = static_cast<extensions::LogReport&>(trainer.get_extension("LogReport")).log();
    ASSERT_EQ(log.size(), 3u);
    EXPECT_LT(log[2].values.at("main/loss"), log[0].values.at("main/loss"));
    EXPECT_GT(log[2].values.at("validation/main/accuracy"), 0.9);

    serializers::save_npz(folder / "model.npz", model);
    serializers::save_npz(folder / "optimizer.npz", optimizer);
    auto other = L::Classifier(MLP(64, 10));
    optimizers::Adam other_optimizer;
    other_optimizer.setup(other);
    serializers::load_npz(folder / "model.npz", other);
    serializers::load_npz(folder / "optimizer.npz", other_optimizer);
    EXPECT_EQ(other_optimizer.t(), optimizer.t());
    EXPECT_TRUE(xp::array_equal(other.predictor.l1.W.update_rule()->states[1],
                                model.predictor.l1.W.update_rule()->states[1].get()));
    auto means = extensions::Evaluator(test_iter, std::as_const(other)).evaluate();
    EXPECT_FALSE(other.loss.defined());
    EXPECT_EQ(extensions::Evaluator(test_iter, other).evaluate(), means);
    EXPECT_TRUE(other.loss.defined());
    EXPECT_NEAR(means.at("main/accuracy"), log[2].values.at("validation/main/accuracy"), 0.011);
  }
}

}  // namespace
}  // namespace rensa::training

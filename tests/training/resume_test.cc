// A run that goes on from a file: bit for bit the run that was not interrupted.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "rensa/array/random.h"
#include "rensa/array/zip.h"
#include "rensa/core/error.h"
#include "rensa/core/files.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/serializers/npz.h"
#include "rensa/training/training.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"
#include "tests/training/models.h"

namespace rensa::training {
namespace {

using ::testing::HasSubstr;

/// Its sizes are inferred, it draws random numbers, and it has persistents.
struct Net : Chain<Net> {
  L::Linear l1{8}, l2{10};
  Persistent mean{xp::zeros({8}, float32, cpu())};
  Counter calls;
  void members(Visitor& v) override {
    v("l1", l1), v("l2", l2), v("mean", mean), v("calls", calls);
  }
  Variable operator()(const Variable& x) {
    Variable h = F::relu(l1(x));
    if (config().train) {
      mean = 0.9f * mean + 0.1f * h.array().mean(0);
      ++calls;
    }
    return l2(F::dropout(h, 0.25));
  }
};

/// The iterations at which it was called, and the least loss so far.
struct Watcher final : Extension {
  std::vector<std::int64_t>* calls;
  double least = 1e9;
  explicit Watcher(std::vector<std::int64_t>* c) : calls(c) {}
  void operator()(Trainer& trainer) override {
    calls->push_back(trainer.updater().iteration());
    least = std::min(least, trainer.observation().at("main/loss").item<double>());
  }
  void members(Visitor& v) override { v("least", least); }
  std::string default_name() const override { return "Watcher"; }
};

/// Fires at the n-th, then at the 2n-th time that it is asked after that ...
struct Doubling {
  std::int64_t left, next;
  explicit Doubling(std::int64_t n) : left(n), next(2 * n) {}
  bool operator()(Trainer&) {
    if (--left > 0) return false;
    left = next, next *= 2;
    return true;
  }
  void members(Visitor& v) { v("left", left), v("next", next); }
};

struct Options {
  Device device;
  bool capture = false;
  std::function<Optimizer()> optimizer;
  int replicas = 1;
};

/// A run of its own, made anew each time.
struct Session {
  L::Classifier<Net> model{Net()};
  Optimizer optimizer;
  std::unique_ptr<Trainer> trainer;
  std::vector<std::int64_t> thirds, halves, doubling;

  Session(const Options& options, const std::string& out) : optimizer(options.optimizer()) {
    model.to(options.device);
    optimizer.setup(model);
    auto data = datasets::get_synthetic_digits(90, 30, 3);
    iterators::SerialIterator train(data.train, 20), test(data.test, 10, {.repeat = false});
    trainer = std::make_unique<Trainer>(make_updater(options, train), Trigger(4, "epoch"), out);
    trainer->extend(extensions::Evaluator(test, model));
    trainer->extend(Watcher(&thirds), {.name = "thirds", .trigger = {3, "iteration"}});
    trainer->extend(Watcher(&halves), {.name = "halves", .trigger = {0.5, "epoch"}});
    trainer->extend(Watcher(&doubling), {.name = "doubling", .trigger = Doubling(2)});
    trainer->extend(extensions::LogReport());
  }

  Updater make_updater(const Options& options, const Iterator& train) const {
    if (options.replicas > 1) {
      ParallelUpdaterOptions parallel{.devices = {{"main", options.device}}};
      for (int i = 1; i < options.replicas; ++i) {
        parallel.devices.emplace_back("other" + std::to_string(i), options.device);
      }
      return ParallelUpdater(train, optimizer, parallel);
    }
    return StandardUpdater(train, optimizer,
                           {.device = options.device,
                            .capture = options.capture,
                            .capture_options = {.replay_lists = true}});
  }

  /// All that the run has come to, but the time that it took.
  std::vector<std::string> outcome() {
    std::vector<std::string> text;
    for (const NamedParameter& p : model.namedparams()) {
      text.push_back(p.path);
      for (double value : p.parameter.array().to_vector<double>()) {
        text.push_back(fmt::format("{}", value));
      }
      for (const Array& state : p.parameter.update_rule()->states) {
        for (double value : state.to_vector<double>()) text.push_back(fmt::format("{}", value));
      }
    }
    for (double value : model.predictor.mean.to_vector<double>()) {
      text.push_back(fmt::format("mean {}", value));
    }
    text.push_back(
        fmt::format("{} {} {}", model.predictor.calls.value(), optimizer.t(), optimizer.epoch()));
    for (const char* name : {"thirds", "halves", "doubling"}) {
      text.push_back(
          fmt::format("{} {}", name, static_cast<Watcher&>(trainer->get_extension(name)).least));
    }
    for (const extensions::LogEntry& entry :
         static_cast<extensions::LogReport&>(trainer->get_extension("LogReport")).log()) {
      text.push_back(fmt::format("{} {}", entry.epoch, entry.iteration));
      for (const auto& [key, value] : entry.values)
        text.push_back(fmt::format("{} {}", key, value));
    }
    return text;
  }
};

std::vector<std::int64_t> beyond(std::int64_t first, const std::vector<std::int64_t>& all) {
  std::vector<std::int64_t> later;
  for (std::int64_t i : all) {
    if (i > first) later.push_back(i);
  }
  return later;
}

/// Whole runs of 18 iterations of 4.5 each an epoch, and ones that go on from the middle of one.
void goes_on_as_it_would_have(const Options& options) {
  testing::TemporaryFolder folder;
  xp::random::seed(11);
  Session whole(options, folder / "whole");
  for (std::int64_t at : {7, 9}) {
    auto is_there = [at](Trainer& trainer) { return trainer.updater().iteration() == at; };
    auto save = [path = folder / std::to_string(at) + ".npz"](Trainer& trainer) {
      serializers::save_npz(path, trainer);
    };
    whole.trainer->extend(save, {.name = "save", .trigger = is_there, .priority = -100});
  }
  whole.trainer->run();
  ASSERT_EQ(whole.trainer->updater().iteration(), 18);
  for (std::int64_t at : {7, 9}) {
    SCOPED_TRACE(at);
    xp::random::seed(static_cast<std::uint64_t>(at));
    Session rest(options, folder / "rest");
    for (int i = 0; i < 2; ++i) {
      auto never = [](Trainer&) { return false; };
      rest.trainer->extend([](Trainer&) {}, {.name = "save", .trigger = never, .priority = -100});
    }
    serializers::load_npz(folder / std::to_string(at) + ".npz", *rest.trainer);
    EXPECT_EQ(rest.trainer->updater().iteration(), at);
    EXPECT_GT(rest.trainer->elapsed_time(), 0);
    rest.trainer->run();
    EXPECT_EQ(rest.outcome(), whole.outcome());
    EXPECT_EQ(rest.thirds, beyond(at, whole.thirds));
    EXPECT_EQ(rest.halves, beyond(at, whole.halves));
    EXPECT_EQ(rest.doubling, beyond(at, whole.doubling));
  }
}

const std::vector<std::pair<const char*, std::function<Optimizer()>>> kOptimizers = {
    {"SGD", [] { return optimizers::SGD(0.1); }},
    {"Adam", [] { return optimizers::Adam(0.01); }},
    {"SMORMS3", [] { return optimizers::SMORMS3(0.01); }},
    {"MomentumSGD with hooks",
     [] {
       optimizers::MomentumSGD optimizer(0.05);
       optimizer.add_hook(optimizer_hooks::WeightDecay(1e-3));
       optimizer.add_hook(optimizer_hooks::GradientNoise(0.01));
       return optimizer;
     }},
    {"Adam with a loss scale",
     [] {
       optimizers::Adam optimizer(0.01);
       optimizer.loss_scaling({.interval = 4});
       return optimizer;
     }},
};

TEST(Resume, GoesOnAsItWouldHave) {
  for (Device device : testing::test_devices()) {
    for (const auto& [name, optimizer] : kOptimizers) {
      for (bool capture : {false, true}) {
        SCOPED_TRACE(
            fmt::format("{} on {}, {}", name, device.str(), capture ? "captured" : "eager"));
        goes_on_as_it_would_have({.device = device, .capture = capture, .optimizer = optimizer});
      }
    }
  }
}

TEST(Resume, OfSeveralReplicas) {
  for (Device device : testing::test_devices()) {
    // Replicas on one device draw from one generator, in any order: without random numbers.
    UsingConfig without_dropout(&Config::train, false);
    goes_on_as_it_would_have({.device = device, .optimizer = kOptimizers[1].second, .replicas = 2});
  }
}

TEST(Resume, KeysAreChainers) {
  testing::TemporaryFolder folder;
  testing::Line model;
  optimizers::Adam optimizer;
  optimizer.setup(model);
  iterators::SerialIterator iterator(testing::line_data(4), 2);
  Trainer trainer(StandardUpdater(iterator, optimizer), {2, "iteration"}, folder / "out");
  trainer.extend(extensions::LogReport());
  trainer.run();
  serializers::save_npz(folder / "a.npz", trainer);
  FileReader file(folder / "a.npz");
  std::vector<std::string> names = ZipReader(file).names();
  for (const char* name :
       {"updater/model:main/w", "updater/optimizer:main/t", "updater/optimizer:main/epoch",
        "updater/optimizer:main/w/t", "updater/optimizer:main/w/m", "updater/iteration",
        "updater/iterator:main/current_position", "updater/iterator:main/epoch",
        "updater/iterator:main/is_new_epoch", "updater/iterator:main/previous_epoch_detail",
        "stop_trigger/previous_iteration", "stop_trigger/previous_epoch_detail",
        "extension_triggers/LogReport/previous_iteration",
        "extensions/LogReport/_trigger/previous_epoch_detail",
        "extensions/LogReport/_summary/_names", "extensions/LogReport/_log",
        "_snapshot_elapsed_time"}) {
    EXPECT_THAT(names, ::testing::Contains(std::string(name) + ".npy"));
  }
}

TEST(Resume, ARunThatWasOverStaysOver) {
  testing::TemporaryFolder folder;
  for (const Trigger& stop : {Trigger(2, "epoch"), Trigger(5, "iteration")}) {
    testing::Line model;
    optimizers::Adam optimizer;
    optimizer.setup(model);
    auto make = [&] {
      iterators::SerialIterator iterator(testing::line_data(4), 2);
      return Trainer(StandardUpdater(iterator, optimizer), stop, folder / "out");
    };
    Trainer first = make(), second = make();
    first.run();
    serializers::save_npz(folder / "a.npz", first);
    serializers::load_npz(folder / "a.npz", second);
    second.run();
    EXPECT_EQ(second.updater().iteration(), first.updater().iteration());
  }
}

TEST(Resume, AFileOfAnotherRunChangesNothing) {
  testing::TemporaryFolder folder;
  Options options{.device = cpu(), .optimizer = kOptimizers[1].second};
  Session first(options, folder / "first");
  first.trainer->run();
  serializers::save_npz(folder / "a.npz", *first.trainer);
  options.optimizer = [] { return optimizers::MomentumSGD(); };
  Session other(options, folder / "other");
  EXPECT_THAT(testing::thrown<SerializationError>(
                  [&] { serializers::load_npz(folder / "a.npz", *other.trainer); }),
              HasSubstr("updater/optimizer:main/predictor/l1/W/m"));
  EXPECT_EQ(other.trainer->updater().iteration(), 0);
  EXPECT_FALSE(other.model.predictor.l1.W.is_initialized());

  iterators::SerialIterator large(testing::line_data(100), 99), small(testing::line_data(4), 2);
  (void)large.next();
  serializers::save_npz(folder / "b.npz", large);
  EXPECT_THAT(
      testing::thrown<SerializationError>([&] { serializers::load_npz(folder / "b.npz", small); }),
      HasSubstr("example 99"));
}

}  // namespace
}  // namespace rensa::training

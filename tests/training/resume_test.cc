// A run that goes on from a file: bit for bit the run that was not interrupted.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "rensa/array/io.h"
#include "rensa/array/npy.h"
#include "rensa/array/random_basics.h"
#include "rensa/array/zip.h"
#include "rensa/core/error.h"
#include "rensa/core/files.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/serializers/npz.h"
#include "rensa/training/training.h"
#include "tests/replace_entry.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"
#include "tests/training/models.h"

namespace rensa::training {
namespace {

using ::testing::HasSubstr;

/// Its sizes are inferred, it draws random numbers, and it has persistents, one made by the first
/// call.
struct Net : Chain<Net> {
  L::Linear l1{8}, l2{10};
  std::optional<L::Linear> between = L::Linear(8);
  Persistent mean{xp::zeros({8}, float32, cpu())}, square;
  Counter calls;
  double ratio = 0.25;
  void members(Visitor& v) override {
    v("l1", l1), v("between", between), v("l2", l2), v("mean", mean), v("square", square);
    v("calls", calls);
  }
  Variable operator()(const Variable& x) {
    Variable h = F::relu(l1(x));
    if (config().train) {
      Array squares = (h.array() * h.array()).mean(0);
      mean = 0.9f * mean + 0.1f * h.array().mean(0);
      square = square.defined() ? 0.9f * square + 0.1f * squares : squares;
      ++calls;
    }
    if (between) h = F::relu((*between)(h));
    return l2(F::dropout(h, ratio));
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

/// The losses so far, and the best of them: a function with members.
struct History {
  std::vector<double> losses;
  std::optional<double> best;
  void operator()(Trainer& trainer) {
    losses.push_back(trainer.observation().at("main/loss").item<double>());
    if (!best || losses.back() < *best) best = losses.back();
  }
  void members(Visitor& v) { v("losses", losses), v("best", best); }
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
  double dropout = 0.25;
  bool threads = false;  // examples are augmented, by threads
};

/// `dataset` with noise.
Dataset augmented(const Dataset& dataset) {
  return datasets::TransformDataset(dataset, [](const Columns& in, RandomStream& random) {
    return Columns{in[0] + 0.1f * static_cast<float>(random.normal()), in[1]};
  });
}

/// A run of its own, made anew each time.
struct Session {
  L::Classifier<Net> model{Net()};
  Optimizer optimizer;
  std::unique_ptr<Trainer> trainer;
  std::optional<StandardUpdater> standard;
  std::vector<std::int64_t> thirds, halves, doubling;

  Session(const Options& options, const std::string& out) : optimizer(options.optimizer()) {
    model.predictor.ratio = options.dropout;
    model.to(options.device);
    optimizer.setup(model);
    auto data = datasets::get_synthetic_digits(90, 30, 3);
    Iterator train = iterators::SerialIterator(data.train, 20);
    Iterator test = iterators::SerialIterator(data.test, 10, {.repeat = false});
    if (options.threads) {
      train = iterators::MultithreadIterator(augmented(data.train), 20, {.n_threads = 3});
      test = iterators::MultithreadIterator(augmented(data.test), 10, {.repeat = false});
    }
    trainer = std::make_unique<Trainer>(make_updater(options, train), Trigger(4, "epoch"), out);
    trainer->extend(extensions::Evaluator(test, model));
    trainer->extend(Watcher(&thirds), {.name = "thirds", .trigger = {3, "iteration"}});
    trainer->extend(Watcher(&halves), {.name = "halves", .trigger = {0.5, "epoch"}});
    trainer->extend(Watcher(&doubling), {.name = "doubling", .trigger = Doubling(2)});
    trainer->extend(extensions::LogReport());
    trainer->extend(History(), {.name = "history"});
  }

  Updater make_updater(const Options& options, const Iterator& train) {
    if (options.replicas > 1) {
      ParallelUpdaterOptions parallel{.devices = {{"main", options.device}}};
      for (int i = 1; i < options.replicas; ++i) {
        parallel.devices.emplace_back("other" + std::to_string(i), options.device);
      }
      return ParallelUpdater(train, optimizer, parallel);
    }
    StandardUpdater updater(train, optimizer,
                            {.device = options.device,
                             .capture = options.capture,
                             .capture_options = {.replay_lists = true}});
    standard = updater;
    return updater;
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
    for (const Persistent* kept : {&model.predictor.mean, &model.predictor.square}) {
      for (double value : kept->to_vector<double>()) text.push_back(fmt::format("kept {}", value));
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

/// What the trainer's file has there.
std::vector<double> values_below(const Session& session, const std::string& path,
                                 const std::string& file) {
  serializers::save_npz(file, *session.trainer);
  History history;
  serializers::load_npz(file, history, {.path = path});
  EXPECT_TRUE(history.best);
  history.losses.push_back(history.best.value_or(0));
  return history.losses;
}

/// Whole runs of 18 iterations, 4.5 per epoch, and ones that go on from the middle of one.
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
    EXPECT_EQ(values_below(rest, "extensions/history", folder / "rest.npz"),
              values_below(whole, "extensions/history", folder / "whole.npz"));
    if (options.capture) {
      EXPECT_GT(rest.standard->capture_stats().replays, 0);
      EXPECT_GT(whole.standard->capture_stats().replays, 0);
    }
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

TEST(Resume, OfExamplesThatThreadsMake) {
  for (Device device : testing::test_devices()) {
    for (int replicas : {1, 2}) {
      goes_on_as_it_would_have({.device = device,
                                .optimizer = kOptimizers[1].second,
                                .replicas = replicas,
                                .dropout = replicas > 1 ? 0 : 0.25,
                                .threads = true});
    }
  }
}

TEST(Resume, OfSeveralReplicas) {
  for (Device device : testing::test_devices()) {
    // Replicas on one device draw from one generator, in any order: without random numbers.
    goes_on_as_it_would_have(
        {.device = device, .optimizer = kOptimizers[1].second, .replicas = 2, .dropout = 0});
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

/// tests/answers/make_chainer_snapshot.py: after 6 of its 8 iterations, in an order of Chainer's.
TEST(Resume, ARunOfChainerGoesOn) {
  testing::TemporaryFolder folder;
  for (Device device : testing::test_devices()) {
    auto make = [&](testing::Line& model) {
      optimizers::Adam optimizer(0.1);
      optimizer.setup(model);
      iterators::SerialIterator iterator(testing::line_data(12), 3);
      Trainer trainer(StandardUpdater(iterator, optimizer, {.device = device}), {2, "epoch"},
                      folder / "out");
      trainer.extend(extensions::LogReport({.trigger = {2, "epoch"}}));
      trainer.extend(
          [&, path = folder / "again.npz"](Trainer& t) { serializers::save_npz(path, t); },
          {.name = "_Snapshot", .trigger = {7, "iteration"}, .priority = -100});
      return trainer;
    };
    std::string path = testing::data_file("chainer_snapshot.npz");
    for (std::int64_t begun : {6, 7}) {
      testing::Line model;
      Trainer trainer = make(model);
      serializers::load_npz(path, trainer);
      EXPECT_EQ(trainer.updater().iteration(), begun);
      trainer.run();
      EXPECT_EQ(trainer.updater().iteration(), 8);
      EXPECT_NEAR(model.w.item<double>(), 0.721404492855072, 1e-5);
      auto& report = static_cast<extensions::LogReport&>(trainer.get_extension("LogReport"));
      EXPECT_NEAR(report.log().at(0).values.at("main/loss"), 154.8190460205078, 1e-3);
      path = folder / "again.npz";  // of this library, in Chainer's order still
    }
  }
}

/// An updater of the user's own.
class Twice final : public UpdaterBody {
 public:
  using UpdaterBody::UpdaterBody;
  std::int64_t losses = 0;
  void members(Visitor& v) override {
    UpdaterBody::members(v);
    v("losses", losses);
  }

 protected:
  void update_core() override {
    Columns columns = concat_examples(next_batch(), cpu());
    for (int i = 0; i < 2; ++i, ++losses) {
      optimizer().update([&] { return optimizer().target().invoke({columns[0], columns[1]}); });
    }
  }
};

TEST(Resume, OfAnUpdaterOfOnesOwn) {
  testing::TemporaryFolder folder;
  std::vector<float> weights;
  for (bool reads : {false, true}) {
    testing::Line model;
    optimizers::Adam optimizer(0.1);
    optimizer.setup(model);
    iterators::SerialIterator iterator(testing::line_data(12), 3, {.seed = 1});
    auto body = std::make_shared<Twice>(iterator, optimizer);
    Trainer trainer(Updater(body), {5, "iteration"}, folder / "out");
    trainer.extend([&](Trainer& t) { serializers::save_npz(folder / "a.npz", t); },
                   {.name = "save", .trigger = {3, "iteration"}, .priority = -100});
    if (reads) serializers::load_npz(folder / "a.npz", trainer);
    EXPECT_EQ(body->losses, reads ? 6 : 0);
    trainer.run();
    EXPECT_EQ(body->losses, 10);
    weights.push_back(model.w.item<float>());
  }
  EXPECT_EQ(weights[0], weights[1]);
}

/// Two networks against each other: two optimizers and two iterators, all by name.
struct Pair {
  testing::Line a, b;
  optimizers::Adam of_a{0.1};
  optimizers::MomentumSGD of_b{0.001};
  std::unique_ptr<Trainer> trainer;

  Pair(const std::string& out, Device device, bool capture) {
    of_a.setup(a), of_b.setup(b);
    iterators::SerialIterator main(testing::line_data(11), 3), noise(testing::line_data(7), 2);
    auto both = [this](const Variables& in) {
      of_a.update(a, in[0], in[1]);
      of_b.update([&] { return b(in[2], in[3]) + F::mean(F::square(b.w - a.w.array())); });
    };
    StandardUpdater updater({{"main", main}, {"noise", noise}}, {{"a", of_a}, {"b", of_b}},
                            {.device = device,
                             .update_core = both,
                             .capture = capture,
                             .capture_options = {.replay_lists = true}});
    trainer = std::make_unique<Trainer>(updater, Trigger(4, "epoch"), out);
    trainer->extend(extensions::LogReport({.trigger = {2, "iteration"}}));
    trainer->extend(extensions::observe_lr("b"), {.trigger = {2, "iteration"}});
  }
  std::vector<std::string> outcome() const {
    std::vector<std::string> text;
    for (const NamedParameter& p : trainer->updater().namedparams()) {
      text.push_back(fmt::format("{} {}", p.path, p.parameter.array().item<float>()));
      for (const Array& state : p.parameter.update_rule()->states) {
        text.push_back(fmt::format("{}", state.item<float>()));
      }
    }
    for (const Optimizer& optimizer : {Optimizer(of_a), Optimizer(of_b)}) {
      text.push_back(fmt::format("{} {}", optimizer.t(), optimizer.epoch()));
    }
    for (const auto& entry :
         static_cast<extensions::LogReport&>(trainer->get_extension("LogReport")).log()) {
      for (const auto& [key, value] : entry.values)
        text.push_back(fmt::format("{} {}", key, value));
    }
    return text;
  }
};

TEST(Resume, OfSeveralOptimizersAndIterators) {
  for (Device device : testing::test_devices()) {
    for (bool capture : {false, true}) {
      testing::TemporaryFolder folder;
      xp::random::seed(3);
      Pair whole(folder / "whole", device, capture);
      auto at_5 = [](Trainer& t) { return t.updater().iteration() == 5; };
      auto save = [&](Trainer& t) { serializers::save_npz(folder / "a.npz", t); };
      whole.trainer->extend(save, {.name = "save", .trigger = at_5, .priority = -100});
      whole.trainer->run();
      EXPECT_GT(whole.trainer->updater().iteration(), 12);
      // Chainer's names.
      for (const char* name : {"updater/model:a/w", "updater/model:b/w", "updater/optimizer:a/w/m",
                               "updater/optimizer:b/w/v", "updater/iterator:main/current_position",
                               "updater/iterator:noise/current_position"}) {
        EXPECT_TRUE(xp::load_npz(folder / "a.npz").contains(name)) << name;
      }
      xp::random::seed(4);
      Pair rest(folder / "rest", device, capture);
      auto never = [](Trainer&) { return false; };
      rest.trainer->extend([](Trainer&) {}, {.name = "save", .trigger = never, .priority = -100});
      serializers::load_npz(folder / "a.npz", *rest.trainer);
      EXPECT_EQ(rest.trainer->updater().iteration(), 5);
      rest.trainer->run();
      EXPECT_EQ(rest.outcome(), whole.outcome());
    }
  }
}

/// A broken log, random state or optimizer state is found before anything has been changed.
TEST(Resume, AFileWithABrokenPartChangesNothing) {
  testing::TemporaryFolder folder;
  Options options{.device = cpu(), .optimizer = kOptimizers[1].second};
  Session whole(options, folder / "whole");
  whole.trainer->run();
  const std::vector<std::pair<std::string, std::string>> faults = {
      {"extensions/LogReport/_log", format_npy_text("[{]")},
      {"random", format_npy_text("cpu mersenne 1 2")},
      {"random", format_npy_text("nonsense")},
      {"random", format_npy_text("nowhere philox4x32-10 1 0")},
      {"updater/optimizer:main/predictor/l1/W/m", format_npy(xp::zeros({3, 3}, float32, cpu()))},
      {"updater/optimizer:main/predictor/l1/b/v", format_npy(xp::zeros({3}, float32, cpu()))},
  };
  for (const auto& [key, bytes] : faults) {
    for (bool trained : {false, true}) {
      SCOPED_TRACE(key + (trained ? ", into a trained model" : ", into a new one"));
      serializers::save_npz(folder / "a.npz", *whole.trainer);
      testing::replace_entry(folder / "a.npz", key + ".npy", bytes);
      Session rest(options, folder / "rest");
      if (trained) rest.trainer->run();
      std::vector<std::string> before = trained ? rest.outcome() : std::vector<std::string>();
      xp::random::GeneratorState random = xp::random::get_random_state(cpu());
      EXPECT_THAT(testing::message_of<Error>(
                      [&] { serializers::load_npz(folder / "a.npz", *rest.trainer); }),
                  HasSubstr("a.npz: "));
      EXPECT_EQ(xp::random::get_random_state(cpu()), random);
      if (trained) {
        EXPECT_EQ(rest.outcome(), before);
        continue;
      }
      EXPECT_EQ(rest.trainer->updater().iteration(), 0);
      EXPECT_EQ(rest.optimizer.t(), 0);
      EXPECT_FALSE(rest.model.predictor.l1.W.is_initialized());
      for (const ParameterRef& p : rest.model.params()) {
        EXPECT_TRUE(p.update_rule()->states.empty());
      }
    }
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

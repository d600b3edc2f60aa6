// ParallelUpdater over CPU replicas, and over two GPUs where they are.
#include "rensa/training/parallel_updater.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "rensa/array/random_basics.h"
#include "rensa/core/error.h"
#include "rensa/optimizers/multi_node_optimizer.h"
#include "rensa/optimizers/optimizers.h"
#include "tests/ranks.h"
#include "tests/testing.h"
#include "tests/training/models.h"
#include "tests/training/replicas.h"

namespace rensa::training {
namespace {

using testing::Devices;
using testing::eight_cpus;
using testing::iterator_of;
using testing::kThreeCpus;
using testing::Line;
using testing::line_data;
using testing::set_in_between;

/// The weight after each of some iterations on one device.
std::vector<float> weights_of_one(std::int64_t batch_size, int iterations) {
  Line model;
  optimizers::Adam optimizer(0.1);
  optimizer.setup(model);
  StandardUpdater updater(iterator_of(batch_size), optimizer);
  std::vector<float> weights;
  for (int i = 0; i < iterations; ++i) {
    set_in_between(optimizer, i);
    updater.update();
    weights.push_back(model.w.item<float>());
  }
  return weights;
}

void expect_as_one_device(const Devices& devices, int accumulate = 1, bool on_main = false) {
  for (std::int64_t batch_size : {6, 7, 2}) {  // even, uneven, fewer examples than replicas
    std::vector<float> expected = weights_of_one(batch_size, 12);
    Line model;
    optimizers::Adam optimizer(0.1);
    optimizer.setup(model);
    ParallelUpdater updater(iterator_of(batch_size), optimizer,
                            {.devices = devices,
                             .reduction = "mean",
                             .accumulate = accumulate,
                             .update_on_main = on_main});
    for (int i = 0; i < 12; ++i) {
      set_in_between(optimizer, i);
      updater.update();
      EXPECT_NEAR(model.w.item<float>(), expected[static_cast<std::size_t>(i)], 1e-4);
      for (const auto& [name, device] : devices) {
        EXPECT_EQ(updater.model(name).params()[0].device(), device);
        EXPECT_EQ(updater.model(name).params()[0].item<float>(),
                  model.w.item<float>());  // bit-equal
      }
    }
    EXPECT_EQ(optimizer.t(), 12);
    for (const auto& [name, device] : devices) {
      ParameterRef w = updater.model(name).params()[0];
      bool keeps = name == "main" || !on_main;
      EXPECT_EQ(w.update_rule()->states.empty(), !keeps);
    }
  }
}

TEST(ParallelUpdater, RefusesHooksThatDifferOnReplicas) {
  Line model;
  optimizers::SGD optimizer;
  optimizer.setup(model);
  ParallelUpdater updater(iterator_of(6), optimizer, {.devices = kThreeCpus});
  optimizer.add_hook(optimizer_hooks::GradientNoise(0.1));
  EXPECT_THROW(updater.update(), NotImplementedError);
}

TEST(ParallelUpdater, MainAloneMayDrawRandomNumbers) {
  xp::random::seed(3, cpu());
  Line model;
  optimizers::SGD optimizer(0.001);
  optimizer.setup(model);
  ParallelUpdater updater(iterator_of(6), optimizer,
                          {.devices = kThreeCpus, .update_on_main = true});
  optimizer.add_hook(optimizer_hooks::GradientNoise(0.1));
  for (int i = 0; i < 5; ++i) {
    updater.update();
    for (const char* name : {"second", "third"}) {
      EXPECT_EQ(updater.model(name).params()[0].item<float>(), model.w.item<float>());
    }
  }
}

// Two ranks of two devices each, against one device.
TEST(ParallelUpdater, RanksHaveReplicas) {
  Array x = xp::arange(1, 17, 1, float32, cpu());
  auto train = [&](Line& model, const Optimizer& optimizer, const Array& own, std::int64_t batch,
                   const Devices& devices) {
    ParallelUpdater updater(iterators::SerialIterator(datasets::TupleDataset(own, own * 2.f), batch,
                                                      {.shuffle = false}),
                            optimizer,
                            {.devices = devices, .reduction = "mean", .update_on_main = true});
    for (int i = 0; i < 9; ++i) {
      set_in_between(optimizer, i);
      updater.update();
      for (const auto& [name, device] : devices) {
        EXPECT_EQ(updater.model(name).params()[0].item<float>(), model.w.item<float>());
      }
    }
  };
  Line alone;
  train(alone, optimizers::Adam(0.1).setup(alone), x, 8, {{"main", cpu()}});
  testing::run_ranks(2, [&](const Communicator& c) {
    Line model;
    Array own = x.reshape({2, 2, 4})[{Slice(), c.rank()}].ravel();  // half of each 8 examples
    train(model, create_multi_node_optimizer(optimizers::Adam(0.1).setup(model), c), own, 4,
          {{"main", cpu()}, {"second", cpu()}});
    EXPECT_NEAR(model.w.item<float>(), alone.w.item<float>(), 1e-5);
  });
}

/// A hook and an algorithm that count for themselves.
struct Counts : OptimizerHook {
  std::int64_t calls = 0;
  const char* name() const override { return "Counts"; }
  void operator()(const UpdateCall&) override { ++calls; }
  void members(Visitor& v) override { v("calls", calls); }
};
struct Slower : OptimizerAlgorithm {
  Counter updates;
  const char* name() const override { return "Slower"; }
  void update(const UpdateCall&) override { ++updates; }
  void members(Visitor& v) override { v("updates", updates); }
};

TEST(ParallelUpdater, RefusesStateThatReplicasWouldShare) {
  Line model;
  Optimizer own(std::make_shared<Slower>());
  own.setup(model);
  EXPECT_THAT(testing::thrown<NotImplementedError>(
                  [&] { ParallelUpdater(iterator_of(6), own, {.devices = kThreeCpus}).update(); }),
              ::testing::HasSubstr("optimizer Slower"));
  for (bool of_one : {false, true}) {
    optimizers::SGD optimizer;
    optimizer.setup(model).add_hook(optimizer_hooks::WeightDecay(0.1));  // has numbers alone
    ParallelUpdater updater(iterator_of(6), optimizer, {.devices = kThreeCpus});
    updater.update();
    auto hook = std::make_shared<Counts>();
    if (of_one) model.w.update_rule()->add_hook(hook);
    else optimizer.add_hook(hook);
    EXPECT_THAT(testing::thrown<NotImplementedError>([&] { updater.update(); }),
                ::testing::HasSubstr("hook Counts"));
    EXPECT_EQ(hook->calls, 0);
  }
}

TEST(ParallelUpdater, CpuReplicasLearnAsOneDoes) {
  for (bool on_main : {false, true}) {
    expect_as_one_device(kThreeCpus, 1, on_main);
    expect_as_one_device(eight_cpus(), 1, on_main);
  }
}

TEST(ParallelUpdater, PartsOfPartsLearnAsOneDoes) {
  expect_as_one_device(kThreeCpus, 2);
  expect_as_one_device(kThreeCpus, 5);  // more than a replica has examples
}

TEST(ParallelUpdater, ReplicasOfOneGpuLearnAsOneDoes) {
  RENSA_NEEDS_GPUS(1);
  expect_as_one_device({{"main", gpu(0)}, {"second", gpu(0)}});
  expect_as_one_device({{"main", gpu(0)}, {"second", cpu()}});
}

TEST(ParallelUpdater, TwoGpusLearnAsOneDoes) {
  RENSA_NEEDS_GPUS(2);
  expect_as_one_device({{"main", gpu(0)}, {"second", gpu(1)}});
  expect_as_one_device({{"main", gpu(0)}, {"second", gpu(1)}}, 1, true);
}

TEST(ParallelUpdater, SumAddsTheGradients) {
  Line model;
  optimizers::SGD optimizer(0.001);
  optimizer.setup(model);
  ParallelUpdater updater(iterator_of(4), optimizer, {.devices = kThreeCpus});
  updater.update();
  // Parts {1, 4}, {2}, {3}: each d/dw mean((w x - 2 x)^2) = -4 mean(x^2) at w = 0.
  double gradient = -4 * ((1 + 16) / 2.0 + 4 + 9);
  EXPECT_NEAR(model.w.item<double>(), -0.001 * gradient, 1e-6);
}

/// All replicas stand in forward at the same time, or none gets on.
class Meeting {
 public:
  explicit Meeting(int size) : size_(size) {}
  bool wait() {
    std::unique_lock lock(mutex_);
    std::int64_t round = rounds_;
    if (++here_ == size_) {
      here_ = 0;
      ++rounds_;
      all_.notify_all();
      return true;
    }
    return all_.wait_for(lock, std::chrono::seconds(60), [&] { return rounds_ != round; });
  }

 private:
  int size_, here_ = 0;
  std::int64_t rounds_ = 0;
  std::mutex mutex_;
  std::condition_variable all_;
};

struct MeetingLine : Chain<MeetingLine> {
  Parameter w{Initializer(0.0), {}};
  std::shared_ptr<Meeting> meeting = std::make_shared<Meeting>(3);
  std::shared_ptr<std::atomic<int>> met = std::make_shared<std::atomic<int>>(0);
  std::shared_ptr<std::atomic<bool>> meet = std::make_shared<std::atomic<bool>>(false);
  void members(Visitor& v) override { v("w", w); }
  Variable operator()(const Variable& x, const Variable& t) const {
    if (*meet && meeting->wait()) ++*met;
    Variable d = x * w - t;
    return (d * d).mean();
  }
};

TEST(ParallelUpdater, ReplicasRunAtTheSameTime) {
  MeetingLine model;
  optimizers::SGD optimizer(0.0001);
  optimizer.setup(model);
  ParallelUpdater updater(iterator_of(7), optimizer, {.devices = kThreeCpus});
  updater.update();  // main goes first, for the parameters' shapes
  *model.meet = true;
  for (int i = 0; i < 5; ++i) updater.update();
  EXPECT_EQ(*model.met, 15);
}

struct FailingLine : Chain<FailingLine> {
  Parameter w{Initializer(0.0), {}};
  std::shared_ptr<std::atomic<int>> fail_at = std::make_shared<std::atomic<int>>(-1);
  void members(Visitor& v) override { v("w", w); }
  Variable operator()(const Variable& x, const Variable& t) const {
    if (static_cast<int>(x.array()[0].item<float>()) == *fail_at) throw IndexError("a bad example");
    Variable d = x * w - t;
    return (d * d).mean();
  }
};

TEST(ParallelUpdater, AnExceptionInOneReplicaEndsTheIterationUnchanged) {
  FailingLine model;
  optimizers::Adam optimizer(0.1);
  optimizer.setup(model);
  ParallelUpdater updater(iterator_of(3, 300), optimizer, {.devices = kThreeCpus});
  updater.update();
  for (int offset = 0; offset < 3; ++offset) {  // main and each of the others
    auto before = model.w.item<float>();
    std::int64_t iteration = updater.iteration();
    auto next = static_cast<int>(std::lround(updater.epoch_detail() * 300)) + 1;
    *model.fail_at = next + offset;
    EXPECT_THROW(updater.update(), IndexError);
    EXPECT_EQ(updater.iteration(), iteration);
    EXPECT_EQ(model.w.item<float>(), before);
    updater.update();  // the team goes on
    for (const auto& [name, device] : kThreeCpus) {
      EXPECT_EQ(updater.model(name).params()[0].item<float>(), model.w.item<float>());
    }
  }
}

/// Links in a list, of which the last has the first one's matrix.
struct TiedLayers : Chain<TiedLayers> {
  Sequential layers{L::Linear(1, 1, {.nobias = true}), F::sigmoid,
                    L::Linear(1, 1, {.nobias = true})};
  void members(Visitor& v) override {
    v.tied(layers[2].as<L::Linear>().W, layers[0].as<L::Linear>().W);
    v("layers", layers);
  }
  Variable operator()(const Variable& x, const Variable& t) const {
    Variable d = layers(x.reshape({-1, 1})) - t.reshape({-1, 1});
    return (d * d).mean();
  }
};

TEST(ParallelUpdater, ReplicasOfATiedModelAreTied) {
  TiedLayers model;
  optimizers::Adam optimizer;
  optimizer.setup(model);
  ParallelUpdater updater(iterator_of(6), optimizer, {.devices = kThreeCpus});
  for (int i = 0; i < 4; ++i) updater.update();
  std::set<const VariableBody*> bodies;
  for (const auto& [name, device] : kThreeCpus) {
    auto& replica = static_cast<TiedLayers&>(updater.model(name));
    const Parameter& first = replica.layers[0].as<L::Linear>().W;
    EXPECT_EQ(first.body(), replica.layers[2].as<L::Linear>().W.body());
    EXPECT_EQ(replica.params().size(), 1u);
    EXPECT_EQ(first.item<float>(), model.layers[0].as<L::Linear>().W.item<float>());
    bodies.insert(first.body().get());
  }
  EXPECT_EQ(bodies.size(), 3u);
}

struct Lazy : Chain<Lazy> {
  L::Linear l1{4}, l2{1};
  void members(Visitor& v) override {
    v("l1", l1);
    v("l2", l2);
  }
  Variable operator()(const Variable& x, const Variable& t) const {
    Variable d = l2(F::relu(l1(x.reshape({-1, 1})))) - t.reshape({-1, 1});
    return (d * d).mean();
  }
};

TEST(ParallelUpdater, ReplicasAreEqualAfterLazyInitialization) {
  Lazy model;
  optimizers::Adam optimizer;
  optimizer.setup(model);
  ParallelUpdater updater(iterator_of(5), optimizer, {.devices = kThreeCpus});
  for (int i = 0; i < 6; ++i) {
    updater.update();
    auto main = model.params(), third = updater.model("third").params();
    ASSERT_EQ(main.size(), third.size());
    for (std::size_t p = 0; p < main.size(); ++p) {
      EXPECT_TRUE(xp::array_equal(main[p].array(), third[p].array())) << "iteration " << i;
      EXPECT_NE(main[p].array().data(), third[p].array().data());
    }
  }
}

void expect_equal_replicas(const ParallelUpdater& updater) {
  auto main = updater.model("main").params();
  for (const auto& [name, device] : kThreeCpus) {
    auto others = updater.model(name).params();
    ASSERT_EQ(main.size(), others.size());
    for (std::size_t p = 0; p < main.size(); ++p) {
      EXPECT_TRUE(xp::array_equal(main[p].array(), others[p].array())) << name << ' ' << p;
    }
  }
}

TEST(ParallelUpdater, ReplicasLeaveOutWhatMainLeavesOut) {
  Lazy model;
  optimizers::SGD optimizer(1e-5);
  optimizer.setup(model);
  ParallelUpdater updater(iterator_of(6), optimizer, {.devices = kThreeCpus});
  updater.update();
  for (bool on : {false, true}) {
    model.l2.b.set_update_enabled(on);
    auto before = model.l2.b.array().item<float>();
    updater.update();
    EXPECT_EQ(model.l2.b.array().item<float>() != before, on);
    expect_equal_replicas(updater);
  }
}

TEST(ParallelUpdater, APartReplacedAfterSetupIsTrainedToo) {
  Lazy model;
  optimizers::Adam optimizer;
  optimizer.setup(model);
  model.l2 = L::Linear(1);
  ParallelUpdater updater(iterator_of(6), optimizer, {.devices = kThreeCpus});
  for (int i = 0; i < 3; ++i) {
    updater.update();
    expect_equal_replicas(updater);
  }
  EXPECT_EQ(model.l2.W.update_rule()->t, 3);
}

TEST(ParallelUpdater, ALossScaleStartsAnewOnReplicasToo) {
  for (bool on_main : {false, true}) {
    Line model;
    optimizers::SGD optimizer(0.0001);
    optimizer.loss_scaling({.interval = 1000});
    optimizer.setup(model);
    ParallelUpdater updater(iterator_of(6), optimizer,
                            {.devices = kThreeCpus, .update_on_main = on_main});
    for (int i = 0; i < 3; ++i) updater.update();
    EXPECT_EQ(optimizer.loss_scale().item<double>(), 8);
    optimizer.loss_scaling({.interval = 1000});
    for (int i = 0; i < 2; ++i) {
      updater.update();
      expect_equal_replicas(updater);
    }
    EXPECT_EQ(optimizer.loss_scale().item<double>(), 4);
  }
}

TEST(ParallelUpdater, SynchronizeTakesOverLoadedParametersAndStates) {
  Line model;
  optimizers::Adam optimizer(0.1);
  optimizer.setup(model);
  ParallelUpdater updater(iterator_of(3), optimizer, {.devices = kThreeCpus});
  for (int i = 0; i < 3; ++i) updater.update();
  model.w.array().fill(-5);
  model.w.update_rule()->states[0].fill(0);
  updater.synchronize();
  for (int i = 0; i < 3; ++i) updater.update();
  EXPECT_EQ(updater.model("second").params()[0].item<float>(), model.w.item<float>());
  EXPECT_LT(model.w.item<float>(), -4);
}

/// Counts its calls and keeps a mean, made by the first one.
struct Counting : Chain<Counting> {
  Parameter w;
  Persistent mean;
  Counter calls;
  std::optional<double> last;
  explicit Counting(bool waits)
      : w(waits ? Parameter(Initializer(1)) : Parameter(Initializer(1), {})) {}
  void members(Visitor& v) override {
    v("w", w), v("mean", mean), v("calls", calls), v("last", last);
  }
  Variable operator()(const Variable& x, const Variable&) {
    w.initialize({});
    Array m = x.array().mean();
    mean = mean.defined() ? 0.5f * mean + m : m;
    ++calls;
    last = 2;
    return (x * w).mean();
  }
};

TEST(ParallelUpdater, WhatLastsIsMains) {
  for (Device device : testing::test_devices()) {
    for (bool waits : {true, false}) {
      Counting model(waits);
      optimizers::SGD optimizer(0.1);
      optimizer.setup(model);
      ParallelUpdater updater(iterator_of(4), optimizer,
                              {.devices = {{"main", device}, {"second", device}}});
      auto& second = static_cast<Counting&>(updater.model("second"));
      // Of batches 1 .. 4, 5 .. 8, 9 .. 12 main has 1, 3, then 5, 7, then 9, 11.
      const float of_main[] = {2, 7, 13.5}, of_second[] = {3, 8, 14.5};
      for (int i = 0; i < 3; ++i) {
        if (i == 2) updater.synchronize();
        updater.update();
        EXPECT_EQ(model.calls.value(), i + 1);
        EXPECT_EQ(second.calls.value(), i + 1);
        EXPECT_EQ(model.mean.item<float>(), of_main[i]);
        EXPECT_EQ(second.mean.item<float>(), of_second[i]);
        EXPECT_EQ(second.w.item<float>(), model.w.item<float>());
      }
    }
  }
}

TEST(ParallelUpdater, ReplicasKnowTheEpoch) {
  Line model;
  optimizers::SGD optimizer(1e-4);
  optimizer.setup(model);
  ParallelUpdater updater(iterator_of(4, 8), optimizer, {.devices = kThreeCpus});
  for (int i = 0; i < 5; ++i) updater.update();
  auto rule = updater.model("third").params()[0].update_rule();
  EXPECT_EQ(optimizer.epoch(), 2);
  EXPECT_EQ(rule->owner.lock()->epoch, 2);
}

TEST(ParallelUpdater, OnlyMainReports) {
  Line model;
  optimizers::SGD optimizer(0.0);
  optimizer.setup(model);
  ParallelUpdater updater(iterator_of(4), optimizer, {.devices = kThreeCpus});
  Reporter reporter;
  reporter.add_observer("main", model);
  Observation observation;
  {
    auto scope = reporter.scope(observation);
    updater.update();
  }
  ASSERT_EQ(observation.size(), 1u);
  EXPECT_NEAR(observation.at("main/loss").item<double>(), (4 + 64) / 2.0, 1e-4);  // of {1, 4}
}

TEST(ParallelUpdater, BadArguments) {
  Line model;
  optimizers::SGD optimizer;
  optimizer.setup(model);
  auto make = [&](Devices devices, const char* reduction = "sum") {
    ParallelUpdater(iterator_of(4), optimizer,
                    {.devices = std::move(devices), .reduction = reduction});
  };
  EXPECT_THROW(make({}), ValueError);
  EXPECT_THROW(make({{"first", cpu()}}), ValueError);
  EXPECT_THROW(make({{"main", cpu()}, {"main", cpu()}}), ValueError);
  EXPECT_THROW(make({{"main", cpu()}}, "median"), ValueError);
  EXPECT_THROW(make({{"main", gpu(num_gpus())}}), DeviceError);
  EXPECT_THROW(
      ParallelUpdater(iterator_of(4), optimizer, {.devices = {{"main", cpu()}}, .accumulate = 0}),
      ValueError);
  EXPECT_THROW(
      ParallelUpdater(iterator_of(4), optimizer, {.devices = {{"main", cpu()}}, .pack_bytes = 0}),
      ValueError);
}

}  // namespace
}  // namespace rensa::training

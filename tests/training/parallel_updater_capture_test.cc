// ParallelUpdater's captured iterations, and its eager ones, from which they may not differ in a
// bit.
#include <gtest/gtest.h>

#include <set>

#include "rensa/array/random_basics.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/training/parallel_updater.h"
#include "tests/testing.h"
#include "tests/training/models.h"
#include "tests/training/replicas.h"

namespace rensa::training {
namespace {

using testing::Devices;
using testing::eight_cpus;
using testing::iterator_of;
using testing::kThreeCpus;
using testing::set_in_between;

/// With what lasts and with random numbers: features normalized, and some of them left out.
struct Noisy : Chain<Noisy> {
  L::Linear l1{1, 8}, l2{8, 1};
  L::BatchNormalization bn{8};
  double ratio;
  explicit Noisy(double left_out) : ratio(left_out) {}
  void members(Visitor& v) override { v("l1", l1), v("bn", bn), v("l2", l2); }
  Variable operator()(const Variable& x, const Variable& t) const {
    Variable h = F::dropout(F::relu(bn(l1(x.reshape({-1, 1})))), ratio);
    Variable d = l2(h) - t.reshape({-1, 1});
    Variable loss = (d * d).mean();
    report({{"loss", loss}}, *this);
    return loss;
  }
};

/// The parameters, optimizer states and running statistics after each of some iterations.
std::vector<float> course_of(const Devices& devices, bool captured, std::int64_t batch_size,
                             int iterations, CaptureStats* stats, int accumulate = 1,
                             bool on_main = false) {
  // Threads that draw from one device's generator do so in any order.
  std::set<Device> places;
  for (const auto& [name, device] : devices) {
    xp::random::seed(7, device);
    places.insert(device);
  }
  Noisy model(places.size() == devices.size() ? 0.25 : 0);
  double value = 0;
  for (const ParameterRef& p : model.params()) {
    p.array().assign(xp::linspace(-0.5, 0.5 + value, p.array().size()).reshape(p.shape()));
    value += 0.125;
  }
  optimizers::Adam optimizer(0.05);
  optimizer.setup(model);
  ParallelUpdater updater(iterator_of(batch_size), optimizer,
                          {.devices = devices,
                           .reduction = "mean",
                           .accumulate = accumulate,
                           .update_on_main = on_main,
                           .pack_bytes = 1,  // eager sums begin with each parameter
                           .capture = captured,
                           .capture_options = {.replay_lists = true}});
  Reporter reporter;
  reporter.add_observer("main", model);
  std::vector<float> course;
  auto note = [&](const Array& a) {
    for (float x : a.to_vector<float>()) course.push_back(x);
  };
  for (int i = 0; i < iterations; ++i) {
    set_in_between(optimizer, i);
    Observation observation;
    {
      auto scope = reporter.scope(observation);
      updater.update();
    }
    EXPECT_EQ(observation.size(), 1u);  // main's
    course.push_back(observation.at("main/loss").item<float>());
    for (const ParameterRef& p : model.params()) note(p.array());
    note(model.bn.avg_mean), note(model.bn.avg_var);
    for (const auto& [name, device] : devices) {
      std::vector<ParameterRef> mine = model.params(), theirs = updater.model(name).params();
      for (std::size_t p = 0; p < mine.size(); ++p) {
        EXPECT_TRUE(xp::array_equal(mine[p].array(), theirs[p].array().to(mine[p].device())));
      }
    }
  }
  *stats = updater.capture_stats();
  return course;
}

void expect_captured_as_eager(const Devices& devices, int accumulate = 1, bool on_main = false) {
  std::int64_t even = 2 * std::ssize(devices);
  for (std::int64_t batch_size : {even, even + 1}) {
    CaptureStats eager, captured;
    std::vector<float> wanted =
        course_of(devices, false, batch_size, 20, &eager, accumulate, on_main);
    EXPECT_EQ(course_of(devices, true, batch_size, 20, &captured, accumulate, on_main), wanted)
        << batch_size;
    EXPECT_EQ(eager.calls, 0);
    EXPECT_GE(captured.replays, 5) << captured.last_fallback;
    EXPECT_EQ(captured.fallbacks, 0) << captured.last_fallback;
  }
}

TEST(ParallelUpdater, CapturedIterationsAreTheEagerOnes) {
  expect_captured_as_eager(kThreeCpus);
  expect_captured_as_eager({{"main", cpu()}});
  expect_captured_as_eager(kThreeCpus, 2);
  expect_captured_as_eager(kThreeCpus, 1, true);
  expect_captured_as_eager(eight_cpus());
}

TEST(ParallelUpdater, CapturedIterationsOfGpusAreTheEagerOnes) {
  RENSA_NEEDS_GPUS(1);
  expect_captured_as_eager({{"main", gpu(0)}, {"second", gpu(0)}});
  if (num_gpus() < 2) return;
  expect_captured_as_eager({{"main", gpu(0)}, {"second", gpu(1)}});
  expect_captured_as_eager({{"main", gpu(1)}, {"second", gpu(0)}});
  expect_captured_as_eager({{"main", gpu(0)}, {"second", gpu(1)}}, 1, true);
}

struct Pictures : Chain<Pictures> {
  L::Convolution2D conv{3, 4, 3};
  void members(Visitor& v) override { v("conv", conv); }
  Variable operator()(const Variable& x, const Variable& t) const {
    return F::mean(F::square(F::sum(conv(x), {1, 2, 3}) - t));
  }
};

// Also where main's axes change places between iterations.
TEST(ParallelUpdater, ReplicasLieInMemoryAsMainDoes) {
  datasets::TupleDataset data(xp::linspace(-1, 1, 12 * 75).reshape({12, 3, 5, 5}).astype(float32),
                              xp::arange(12, float32));
  for (Device device : testing::test_devices()) {
    std::vector<float> weights[2];
    for (bool channels_last : {false, true}) {
      Pictures model;
      model.conv.W.array().assign(xp::linspace(-0.5, 0.5, 108).reshape({4, 3, 3, 3}));
      model.to(device);
      if (channels_last) L::channels_last(model);
      optimizers::SGD optimizer(1e-4);
      optimizer.setup(model);
      ParallelUpdater updater(iterators::SerialIterator(data, 5, {.shuffle = false}), optimizer,
                              {.devices = {{"main", device}, {"second", device}},
                               .reduction = "mean",
                               .capture = true,
                               .capture_options = {.replay_lists = true}});
      const Link& second = updater.model("second");
      for (int i = 0; i < 12; ++i) {
        if (i == 9) L::channels_last(model);
        updater.update();
        Array own = second.params()[0].array();
        EXPECT_TRUE(xp::array_equal(own, model.conv.W.array()));
        EXPECT_TRUE(i >= 9 || own.strides() == model.conv.W.array().strides());
      }
      EXPECT_GE(updater.capture_stats().replays, 4) << updater.capture_stats().last_fallback;
      weights[channels_last] = model.conv.W.array().to_vector<float>();
    }
    for (std::size_t i = 0; i < weights[0].size(); ++i) {
      EXPECT_NEAR(weights[0][i], weights[1][i], 1e-5);
    }
  }
}

TEST(ParallelUpdater, ABatchThatIsTooSmallForAllRunsEagerly) {
  CaptureStats stats;
  course_of(kThreeCpus, true, 2, 6, &stats);
  EXPECT_EQ(stats.calls, 0);
}

}  // namespace
}  // namespace rensa::training

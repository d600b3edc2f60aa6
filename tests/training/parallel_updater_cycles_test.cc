// Parallel updaters that come, train a little or fail, and go.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "rensa/core/error.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/training/parallel_updater.h"
#include "tests/cycles.h"
#include "tests/testing.h"
#include "tests/training/models.h"

namespace rensa::training {
namespace {

/// Fails for the example x = `bad`, where there is one (no step that is recorded may look).
struct Fragile : Chain<Fragile> {
  L::Linear l1{1, 32}, l2{32, 1};
  L::BatchNormalization bn{32};
  int bad;
  explicit Fragile(int bad) : bad(bad) {}
  void members(Visitor& v) override { v("l1", l1), v("bn", bn), v("l2", l2); }
  Variable operator()(const Variable& x, const Variable& t) const {
    if (bad > 0 && (x.array() == static_cast<float>(bad)).any().item<bool>()) {
      throw IndexError("a bad example");
    }
    Variable d = l2(F::relu(bn(l1(x.reshape({-1, 1}))))) - t.reshape({-1, 1});
    return (d * d).mean();
  }
};

/// An updater over `replicas` on the CPU, for one batch or a few; fails in one of them, or not.
void run_once(int replicas, int bad, bool captured) {
  Fragile model(bad);
  optimizers::Adam optimizer;
  optimizer.setup(model);
  ParallelUpdaterOptions options{
      .reduction = "mean", .capture = captured, .capture_options = {.replay_lists = true}};
  for (int i = 0; i < replicas; ++i) {
    options.devices.emplace_back(i == 0 ? "main" : fmt::format("replica {}", i), cpu());
  }
  iterators::SerialIterator iterator(testing::line_data(12), 12, {.shuffle = false});
  ParallelUpdater updater(iterator, optimizer, options);
  for (int step = 0; step < (captured ? 5 : 1); ++step) {
    if (bad > 0) EXPECT_THROW(updater.update(), IndexError);
    else updater.update();
  }
  EXPECT_EQ(updater.capture_stats().replays > 0, captured);
}

TEST(ParallelUpdaterCycles, LeaveNothing) {
  testing::expect_nothing_is_left([](int i) {
    int replicas = 2 + i % 3;
    bool fails = i % 2 == 1;
    run_once(replicas, fails ? 1 + i % 12 : 0, false);
  });
}

TEST(ParallelUpdaterCycles, CapturedOnesLeaveNothing) {
  testing::expect_nothing_is_left([](int i) { run_once(2 + i % 3, 0, true); });
}

}  // namespace
}  // namespace rensa::training

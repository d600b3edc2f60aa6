// In steady state a training iteration makes no host wait, no allocation of device or pinned
// memory, no pageable copy and no module load: by the driver's own account (CUPTI), with which
// sync_count() agrees.
#include <gtest/gtest.h>

#include "rensa/array/creation.h"
#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/data/data.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/capture.h"
#include "rensa/links/links.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/serializers/npz.h"
#include "rensa/training/training.h"
#include "tests/device/driver_calls.h"
#include "tests/testing.h"

namespace rensa {
namespace {

struct MLP : Chain<MLP> {
  L::Linear l1, l2;
  MLP(std::int64_t units, std::int64_t out) : l1(units), l2(out) {}
  void members(Visitor& v) override { v("l1", l1), v("l2", l2); }
  Variable operator()(const Variable& x) const { return l2(F::dropout(F::relu(l1(x)))); }
};

struct Case {
  const char* name;
  bool capture;
  std::int64_t resident_limit;  // 0: batches travel over the pinned ring
};

void PrintTo(const Case& c, std::ostream* os) { *os << c.name; }

class SteadyState : public ::testing::TestWithParam<Case> {};

TEST_P(SteadyState, AnIterationWaitsForNothingAndAllocatesNothing) {
  RENSA_NEEDS_GPUS(1);
  RENSA_NEEDS_DRIVER_CALLS();
  testing::DriverCallCounter counter;
  auto model = L::Classifier(MLP(64, 10));
  optimizers::Adam optimizer;
  optimizer.setup(model);
  auto data = datasets::get_synthetic_digits(1000, 10, 3);
  training::StandardUpdater updater(
      iterators::SerialIterator(data.train, 100), optimizer,
      {.device = gpu(0),
       .converter_options = {.resident_limit = GetParam().resident_limit},
       .capture = GetParam().capture});
  Reporter reporter;
  reporter.add_observer("main", model);
  DictSummary summary;
  auto iterate = [&](int n) {
    for (int i = 0; i < n; ++i) {
      Observation observation;
      auto scope = reporter.scope(observation);
      updater.update();
      summary.add(observation);
    }
  };
  MemoryPool& pool = cuda::memory_pool(gpu(0));
  iterate(4);
  {  // work that lets the host run as far ahead of the GPU as it may: the most memory of batches
    Array a = xp::ones({4096, 4096}, float32, gpu(0)), b = xp::empty_like(a);
    for (int i = 0; i < 20; ++i) xp::matmul(a, a, {.out = b});
    iterate(20);
  }
  std::int64_t after_first = pool.total_bytes();
  iterate(37);
  cuda::synchronize(gpu(0));
  std::int64_t waits = cuda::sync_count();
  testing::DriverCalls before = counter.snapshot();
  iterate(10);  // fewer than the ring has places: the host may run ahead
  testing::DriverCalls made = counter.snapshot() - before;
  EXPECT_EQ(made.waits(), 0) << made.str();
  EXPECT_EQ(made.waiting_copies(), 0) << made.str();
  EXPECT_EQ(made.allocations(), 0) << made.str();
  EXPECT_EQ(made.module_loads(), 0) << made.str();
  EXPECT_EQ(cuda::sync_count(), waits);
  EXPECT_EQ(pool.total_bytes(), after_first);
  EXPECT_GT(made.calls.size(), 0u);  // the account is alive

  summary
      .compute_mean();  // reading the means waits: for a flag in memory, of which no driver knows
  EXPECT_GT(cuda::sync_count(), waits);
  waits = cuda::sync_count();
  before = counter.snapshot();
  cuda::synchronize(gpu(0));  // a wait that both accounts tell
  made = counter.snapshot() - before;
  EXPECT_GT(made.waits(), 0) << made.str();
  EXPECT_GT(cuda::sync_count(), waits);
}

INSTANTIATE_TEST_SUITE_P(Cases, SteadyState,
                         ::testing::Values(Case{"eager", false, 1_GiB},
                                           Case{"captured", true, 1_GiB},
                                           Case{"eager_ring", false, 0},
                                           Case{"captured_ring", true, 0}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace rensa

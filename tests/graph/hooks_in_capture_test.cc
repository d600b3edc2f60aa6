// Hooks and captured steps: a hook sees every call, or the step stays eager and says why.
#include <gtest/gtest.h>

#include <vector>

#include "rensa/array/random_basics.h"
#include "rensa/autograd/function_hooks.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/capture.h"
#include "rensa/links/links.h"
#include "rensa/links/memory_report.h"
#include "rensa/optimizers/optimizers.h"
#include "tests/testing.h"

namespace rensa {
namespace {

struct Training {
  explicit Training(Device device) : x(xp::ones({4, 3}, float32, device)) {
    xp::random::seed(1);
    link = L::Linear(3, 2);
    link.to(device);
    optimizer.setup(link);
  }
  Variable loss_of(const Variable& in) {
    Variable loss = F::sum(F::square(link(in)));
    link.cleargrads();
    loss.backward();
    optimizer.update();
    return loss;
  }
  Array x;
  L::Linear link{3, 2};
  optimizers::SGD optimizer{0.01};
};

TEST(HooksInCapture, CallsInTheScopeOfAHookRunEagerly) {
  for (Device device : testing::test_devices()) {
    Training captured(device), eager(device);
    auto step =
        capture([&](const Variable& x) { return captured.loss_of(x); }, {.replay_lists = true});
    function_hooks::TimerHook timer;
    link_hooks::TimerHook link_timer;
    for (int i = 0; i < 16; ++i) {
      float loss;
      if (i == 6 || i == 7) {
        FunctionHookScope scope(timer);
        loss = step(captured.x).item<float>();
      } else if (i == 8) {
        LinkHookScope scope(link_timer);
        loss = step(captured.x).item<float>();
      } else {
        loss = step(captured.x).item<float>();
      }
      EXPECT_EQ(loss, eager.loss_of(eager.x).item<float>()) << i;
    }
    EXPECT_EQ(timer.summary()["linear"].occurrence, 2);
    EXPECT_EQ(link_timer.call_history().size(), 1u);
    EXPECT_EQ(step.stats().fallbacks, 3);
    EXPECT_NE(step.stats().last_fallback.find("in the scope of a hook"), std::string::npos);
    EXPECT_GT(step.stats().replays, 5) << "it is replayed before and after";
  }
}

TEST(HooksInCapture, AStepWithAScopeInItStaysEager) {
  for (Device device : testing::test_devices()) {
    Training training(device);
    function_hooks::TimerHook timer;
    auto step = capture(
        [&](const Variable& x) {
          FunctionHookScope scope(timer);
          return training.loss_of(x);
        },
        {.replay_lists = true});
    for (int i = 0; i < 8; ++i) (void)step(training.x);
    EXPECT_EQ(step.stats().replays, 0);
    EXPECT_EQ(timer.summary()["linear"].occurrence, 8);
    EXPECT_NE(step.stats().last_fallback.find("hooks functions"), std::string::npos)
        << step.stats().last_fallback;
  }
}

TEST(HooksInCapture, ALinksTimerKeepsItsStepsEager) {
  for (Device device : testing::test_devices()) {
    Training training(device);
    auto step =
        capture([&](const Variable& x) { return training.loss_of(x); }, {.replay_lists = true});
    for (int i = 0; i < 8; ++i) (void)step(training.x);
    EXPECT_GT(step.stats().replays, 0);
    // A hook that a link gets later is not passed by by what was recorded before.
    link_hooks::TimerHook timer;
    training.link.add_hook(timer);
    std::int64_t replays = step.stats().replays;
    for (int i = 0; i < 8; ++i) (void)step(training.x);
    EXPECT_EQ(step.stats().replays, replays);
    EXPECT_EQ(timer.call_history().size(), 8u);
    EXPECT_NE(step.stats().last_fallback.find("TimerHook"), std::string::npos)
        << step.stats().last_fallback;
  }
}

TEST(HooksInCapture, AHookAddedLaterIsInTheStepsRecordedAnew) {
  for (Device device : testing::test_devices()) {
    Training captured(device), eager(device);
    auto step =
        capture([&](const Variable& x) { return captured.loss_of(x); }, {.replay_lists = true});
    for (int i = 0; i < 24; ++i) {
      for (Training* training : {&captured, &eager}) {
        if (i == 8) training->link.add_hook(link_hooks::WeightStandardization());
        if (i == 16) training->link.delete_hook("WeightStandardization");
      }
      EXPECT_EQ(step(captured.x).item<float>(), eager.loss_of(eager.x).item<float>()) << i;
    }
    EXPECT_EQ(step.stats().recordings, 3);
  }
}

TEST(HooksInCapture, AMemoryReportSeesACapturedStep) {
  for (Device device : testing::test_devices()) {
    Training training(device);
    auto step =
        capture([&](const Variable& x) { return training.loss_of(x); }, {.replay_lists = true});
    for (int i = 0; i < 8; ++i) (void)step(training.x);
    MemoryReport report(device);
    (void)step(training.x);
    bool seen = false;
    for (const auto& holder : report.holders()) seen |= holder.function == "linear";
    EXPECT_TRUE(seen) << report.str();
  }
}

}  // namespace
}  // namespace rensa

// State and Counter as members of links: values that calls leave for the next ones.
#include "rensa/autograd/state.h"

#include <gtest/gtest.h>

#include <utility>

#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/capture.h"
#include "rensa/links/links.h"
#include "rensa/serializers/npz.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using Values = std::vector<float>;
Values values(const Array& a) { return a.to_vector<float>(); }

struct Accumulator : Chain<Accumulator> {
  State sum;
  Counter calls;
  Persistent least;
  void members(Visitor& v) override { v("sum", sum), v("calls", calls), v("least", least); }
  Variable operator()(const Variable& x) {
    sum = sum.defined() ? sum.value() + x : x;
    least = least.defined() ? xp::minimum(least, x.array()) : x.array();
    ++calls;
    return sum;
  }
};

struct Pair : Chain<Pair> {
  Accumulator a, b;
  void members(Visitor& v) override { v("a", a), v("b", b); }
  Variable operator()(const Variable& x) { return a(x) + b(x * 2); }
};

/// One that keeps more than its members say.
struct OwnReset : Chain<OwnReset> {
  Accumulator inner;
  int resets = 0;
  void members(Visitor& v) override { v("inner", inner); }
  void reset_state() override {
    ++resets;
    Link::reset_state();
  }
};

struct Holder : Chain<Holder> {
  OwnReset child;
  void members(Visitor& v) override { v("child", child); }
};

TEST(State, IsTheVariableThatWasAssigned) {
  State h;
  EXPECT_FALSE(h.defined());
  EXPECT_FALSE(h.value().defined());
  EXPECT_THROW((void)h.array(), ValueError);
  Variable w(xp::array({1.f, 2.f}));
  h = w * 3;
  EXPECT_TRUE(h.value().creator());
  F::sum(F::square(h)).backward();
  EXPECT_EQ(values(w.grad()), (Values{18, 36}));
  Array plain = xp::array({5.f});
  h = plain;
  EXPECT_FALSE(h.value().requires_grad());
  EXPECT_EQ(h.array().storage(), plain.storage());
  EXPECT_EQ(h.item<float>(), 5);
  h.reset();
  EXPECT_FALSE(h.defined());
}

TEST(State, IsAValue) {
  State h(Variable(xp::array({1.f})));
  State copy = h;
  EXPECT_NE(copy.array().storage(), h.array().storage());
  copy = xp::array({2.f});
  EXPECT_EQ(h.item<float>(), 1);
  {
    CopyModeScope mode(CopyMode::share);
    State sharing = h;
    EXPECT_EQ(sharing.array().storage(), h.array().storage());
  }
  {
    CopyModeScope mode(CopyMode::init);
    EXPECT_FALSE(State(h).defined());
  }
  State moved = std::move(h);
  EXPECT_EQ(moved.item<float>(), 1);
  EXPECT_FALSE(h.defined());  // NOLINT(bugprone-use-after-move,clang-analyzer-cplusplus.Move)
  h = copy;
  EXPECT_EQ(h.item<float>(), 2);
  copy = State();
  EXPECT_FALSE(copy.defined());
}

TEST(Counter, IsAValue) {
  Counter n = 3;
  Counter copy = n;
  ++copy;
  copy += 2;
  EXPECT_EQ(n.value(), 3);
  EXPECT_EQ(copy.value(), 6);
  Counter moved = std::move(copy);
  EXPECT_EQ(moved, 6);
  copy = n;  // NOLINT(bugprone-use-after-move,clang-analyzer-cplusplus.Move)
  EXPECT_EQ(copy, 3);
  copy = 0;
  EXPECT_EQ(copy, 0);
}

TEST(Counter, OneThatWasMovedFromCountsFromZero) {
  auto moved_from = [] {
    Counter n = 3;
    Counter other = std::move(n);
    return std::pair(std::move(n), other);  // NOLINT(bugprone-use-after-move)
  };
  Counter copy = moved_from().first;
  EXPECT_EQ(Counter(copy), 0);
  auto [counted, other] = moved_from();
  EXPECT_EQ(counted.value(), 0);
  counted += 2;
  EXPECT_EQ(counted, 2);
  auto [read, third] = moved_from();
  read.stored() = 5;
  EXPECT_EQ(read, 5);
}

TEST(Persistent, TakesValuesIntoItsMemory) {
  for (Device device : testing::test_devices()) {
    Persistent p;
    Array first = xp::array({1.f, 2.f}, device);
    p = first;
    EXPECT_NE(p.storage(), first.storage());
    Array held = p;
    p = p * 3.f;
    EXPECT_EQ(values(held), (Values{3, 6}));
    EXPECT_EQ(p.storage(), held.storage());
    p = xp::zeros({3}, float32, device);  // of another shape: in other memory
    EXPECT_EQ(values(held), (Values{3, 6}));
    EXPECT_EQ(p.shape(), Shape({3}));
    EXPECT_THROW(p = Array(), ValueError);
  }
}

TEST(Link, ResetStateReachesAllLinks) {
  Holder model;
  model.child.inner(Variable(xp::ones({2})));
  EXPECT_TRUE(model.child.inner.sum.defined());
  model.reset_state();
  EXPECT_FALSE(model.child.inner.sum.defined());
  EXPECT_TRUE(model.child.inner.least.defined());  // a persistent is no state
  EXPECT_EQ(model.child.inner.calls, 1);
  EXPECT_EQ(model.child.resets, 1);
}

TEST(Link, StatesMoveWithTheModelAndAreNotSaved) {
  RENSA_NEEDS_GPUS(1);
  Pair model;
  model(Variable(xp::ones({2}, float32, cpu())));
  model.to_gpu(0);
  EXPECT_EQ(model.a.sum.value().device(), gpu(0));
  EXPECT_EQ(values(model.b.sum.array()), (Values{2, 2}));
}

TEST(Link, FilesHoldCountersAndNoStates) {
  testing::TemporaryFolder folder;
  Pair model, other;
  for (int i = 0; i < 3; ++i) model(Variable(xp::ones({2}, float32, cpu())));
  other(Variable(xp::zeros({2}, float32, cpu())));
  other.reset_state();
  std::string path = folder / "model.npz";
  serializers::save_npz(path, model);
  serializers::load_npz(path, other);
  EXPECT_EQ(other.a.calls, 3);
  EXPECT_EQ(values(other.b.least), (Values{2, 2}));
  EXPECT_FALSE(other.a.sum.defined());
}

TEST(Link, AStateThatIsNamedTwiceIsRefused) {
  struct Twice : Chain<Twice> {
    State h;
    void members(Visitor& v) override { v("h", h), v("g", h); }
  };
  EXPECT_THROW(Twice().check_members(), ValueError);
}

// A link that moves takes its states along: a recording finds them.
TEST(State, IsReplayedAfterItsLinkHasMoved) {
  for (Device device : testing::test_devices()) {
    auto link = std::make_unique<Accumulator>();
    Accumulator* at = link.get();
    auto step = capture(
        [&](const Variable& x) {
          no_backprop_mode off;
          return (*at)(x);
        },
        {.replay_lists = true});
    Variable one = constant(xp::ones({2}, float32, device));
    for (int i = 0; i < 5; ++i) step(one);
    EXPECT_EQ(step.stats().replays, 2);
    auto moved = std::make_unique<Accumulator>(std::move(*link));
    at = moved.get();
    link = nullptr;
    EXPECT_EQ(values(step(one).array()), (Values{6, 6}));
    EXPECT_EQ(step.stats().replays, 3);
    EXPECT_EQ(values(moved->sum.array()), (Values{6, 6}));
    EXPECT_EQ(moved->calls, 6);
    (*moved)(one);  // eagerly in between
    EXPECT_EQ(values(step(one).array()), (Values{8, 8}));
    EXPECT_EQ(step.stats().replays, 4);
  }
}

}  // namespace
}  // namespace rensa

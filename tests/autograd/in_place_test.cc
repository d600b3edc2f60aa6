// Arrays changed in place between forward and backward: what backward needs of them is gone, and it
// says so; what it does not need may change.
#include <gtest/gtest.h>

#include <functional>

#include "rensa/core/error.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/capture.h"
#include "rensa/links/links.h"
#include "rensa/optimizers/optimizers.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using testing::test_devices;
using testing::thrown;

struct Change {
  const char* name;
  std::function<void(const Array& a)> change;
};

const Change kChanges[] = {
    {"+=", [](const Array& a) { a += 1; }},
    {"*= array", [](const Array& a) { a *= a.copy(); }},
    {"fill", [](const Array& a) { a.fill(2); }},
    {"assign", [](const Array& a) { a.assign(xp::zeros_like(a)); }},
    {"set", [](const Array& a) { a.set(xp::zeros_like(a)); }},
    {"set from the host", [](const Array& a) { a.set(xp::zeros(a.shape(), float32, cpu())); }},
    {"view", [](const Array& a) { a[1] = 3; }},
    {"indices", [](const Array& a) { a[xp::zeros({1}, int64, a.device())] = 3; }},
    {"mask", [](const Array& a) { a[a > 0] = 3; }},
    {"out", [](const Array& a) { xp::add(a, a, {.out = a}); }},
    {"scatter_add", [](const Array& a) { a.scatter_add(xp::zeros({1}, int64, a.device()), a[0]); }},
    {"put", [](const Array& a) { a.put(xp::zeros({1}, int64, a.device()), a[{Slice(0, 1)}]); }},
    {"sort", [](const Array& a) { a.sort(); }},
    {"xp::copyto", [](const Array& a) { xp::copyto(a, 5); }},
};

TEST(InPlace, AnArrayThatBackwardNeeds) {
  for (Device device : test_devices()) {
    for (const Change& c : kChanges) {
      SCOPED_TRACE(c.name);
      Variable x(xp::array({3.f, 1.f, 2.f}, device));
      Variable loss = F::sum(F::square(x));
      c.change(x.array());
      std::string text = thrown<ValueError>([&] { loss.backward(); });
      EXPECT_NE(text.find("backward of square: its input " + x.array().view().describe()),
                std::string::npos)
          << text;
      EXPECT_NE(text.find("changed in place"), std::string::npos) << text;
      EXPECT_FALSE(x.grad().defined());
    }
  }
}

TEST(InPlace, AnOutputThatBackwardNeeds) {
  Variable x(xp::ones({3}));
  Variable y = F::exp(x), loss = F::sum(y);
  y.array() *= 2;
  std::string text = thrown<ValueError>([&] { loss.backward(); });
  EXPECT_NE(text.find("backward of exp: its output"), std::string::npos) << text;
}

TEST(InPlace, WhatNoArgumentHolds) {
  Array condition = xp::array({true, false}), labels = xp::array({0, 1});
  Variable x(xp::ones({2})), scores(xp::ones({2, 3}));
  Variable chosen = F::sum(F::where(condition, x, x * 2));
  Variable loss = F::softmax_cross_entropy(scores, labels);
  condition.fill(true);
  labels.fill(2);
  EXPECT_NE(thrown<ValueError>([&] { chosen.backward(); }).find("its condition"),
            std::string::npos);
  EXPECT_NE(thrown<ValueError>([&] { loss.backward(); }).find("its labels"), std::string::npos);
}

TEST(InPlace, BetweenBackwardAndItsOwnBackward) {
  Variable x(xp::array({-1.f, 2.f}));
  Variable y = F::relu(x);
  Variable gx = grad({F::sum(y * y)}, {x}, {}, true)[0];
  y.array().fill(1);
  EXPECT_THROW(F::sum(gx * gx).backward(), ValueError);
}

TEST(InPlace, WhatBackwardDoesNotNeed) {
  for (Device device : test_devices()) {
    Variable x(xp::ones({3}, float32, device));
    Variable y = x + 1, loss = F::sum(F::square(y));
    x.array().fill(7);  // the sum keeps neither of its operands
    loss.backward();
    EXPECT_EQ(x.grad().to_vector<float>(), std::vector<float>(3, 4.f));
    x.array().fill(7);  // after backward
    Variable again = F::sum(F::square(x));
    again.backward();
    EXPECT_EQ(x.grad().to_vector<float>(), std::vector<float>(3, 18.f));
  }
}

TEST(InPlace, AnUpdateIsNoChange) {
  // Two losses over one graph, each with an optimizer of its own, as in Chainer's DCGAN.
  for (Device device : test_devices()) {
    L::Linear first(2, 2), second(2, 1);
    first.to_device(device);
    second.to_device(device);
    optimizers::Adam one, two;
    one.setup(first);
    two.setup(second);
    Variable y = F::tanh(second(F::tanh(first(xp::ones({3, 2}, float32, device)))));
    auto loss_of_one = [&] { return F::mean(F::square(y)); };
    auto loss_of_two = [&] { return F::mean(y); };
    for (int i = 0; i < 2; ++i) {
      (void)one.update(loss_of_one);
      (void)two.update(loss_of_two);
    }
    EXPECT_EQ(two.t(), 2);
  }
}

TEST(InPlace, AWriteByAReplay) {
  for (Device device : test_devices()) {
    Array state = xp::ones({3}, float32, device);
    CaptureOptions options{.replay_lists = true};
    auto step = capture(
        [&](const Variable& x) {
          state += x.array();
          return Variable(state.sum());
        },
        options);
    Variable one(xp::ones({3}, float32, device));
    for (int i = 0; i < 4; ++i) (void)step(one);
    ASSERT_EQ(step.stats().replays, 1);
    Variable s(state);
    Variable loss = F::sum(F::square(s));
    (void)step(one);
    ASSERT_EQ(step.stats().replays, 2);
    EXPECT_THROW(loss.backward(), ValueError);
  }
}

TEST(InPlace, AStepThatChangesWhatItNeedsIsRefusedFromTheFirstCall) {
  for (Device device : test_devices()) {
    Variable w(xp::ones({3}, float32, device));
    auto step = capture(
        [&](const Variable& x) {
          Variable loss = F::sum(w * x * x);
          x.array() += 1;
          loss.backward();
          return loss;
        },
        {.replay_lists = true});
    EXPECT_THROW((void)step(Variable(xp::ones({3}, float32, device))), ValueError);
  }
}

}  // namespace
}  // namespace rensa

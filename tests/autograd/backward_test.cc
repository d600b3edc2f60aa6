// What backward gives back of a graph while it runs, and what it leaves to others.
#include "rensa/autograd/backward.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "rensa/array/creation.h"
#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"
#include "rensa/functions/functions.h"
#include "rensa/links/links.h"
#include "rensa/links/memory_report.h"
#include "rensa/optimizers/optimizers.h"
#include "tests/testing.h"

namespace rensa {
namespace {

/// Its input; in backward notes whether a function of the same graph is still there.
class Probe final : public FunctionNode {
 public:
  struct Seen {
    std::weak_ptr<FunctionNode> function;
    int calls = 0;
    bool alive = false;
  };
  explicit Probe(Seen* seen) : FunctionNode("probe"), seen_(seen) {}
  Arrays forward(const Arrays& x) override { return {x[0].copy()}; }
  Variables backward(const Indexes&, const Variables& gy) override {
    ++seen_->calls;
    seen_->alive = !seen_->function.expired();
    return {gy[0]};
  }

 private:
  Seen* seen_;
};

/// The sum of exp(probe(x)), of which the probe sees the exp.
Variable loss_over(const Variable& x, Probe::Seen* seen) {
  Variable y = F::exp(apply<Probe>({x}, seen)[0]);
  seen->function = y.creator();
  return F::sum(y);
}

const Array kValues = xp::array({0.5, -1.0, 2.0});

TEST(Backward, FunctionsOfALossThatIsGivenUpGoOnTheWay) {
  Variable x(kValues), held_x(kValues);
  Probe::Seen given_up, held;
  Variable loss = loss_over(x, &given_up);
  std::move(loss).backward();
  EXPECT_FALSE(loss.defined());
  EXPECT_EQ(given_up.calls, 1);
  EXPECT_FALSE(given_up.alive);

  Variable held_loss = loss_over(held_x, &held);
  held_loss.backward();
  EXPECT_TRUE(held.alive);
  held_loss.backward();  // again: gradients add up
  EXPECT_EQ(held.calls, 2);
  EXPECT_TRUE(xp::array_equal(held_x.grad(), x.grad() * 2));
}

TEST(Backward, SoDoThoseOfAListThatIsGivenUp) {
  Variable x(kValues);
  Probe::Seen given_up, held;
  Variables losses = {loss_over(x, &given_up)};
  backward(std::move(losses));
  EXPECT_FALSE(given_up.alive);
  backward({loss_over(x, &held)});  // the list in braces holds it
  EXPECT_TRUE(held.alive);
}

TEST(Backward, WhatSomebodyHoldsStaysBelowALossThatIsGivenUp) {
  Variable x(kValues);
  Probe::Seen seen;
  Variable y = F::exp(apply<Probe>({x}, &seen)[0]);  // as what a generator made, for two losses
  seen.function = y.creator();
  F::sum(y * y).backward();
  EXPECT_TRUE(seen.alive);
  Array first = x.grad().copy();
  x.cleargrad();
  F::sum(y * 3).backward();
  EXPECT_EQ(seen.calls, 2);
  Array e = xp::exp(kValues);
  EXPECT_TRUE(xp::allclose(first, e * e * 2, 1e-12));
  EXPECT_TRUE(xp::allclose(x.grad(), e * 3, 1e-12));
}

TEST(Backward, BranchesThatMeetGetTheirGradientsFromALossThatIsGivenUp) {
  Variable x(kValues), kept(kValues);
  auto loss = [](const Variable& v) {
    Variable a = F::exp(v), b = F::tanh(v);
    Variables parts = F::split_axis(a * b, 3, 0);
    return F::sum(a + b * parts[0] + F::broadcast_to(parts[2], {3}) * a);
  };
  loss(x).backward();
  Variable y = loss(kept);
  y.backward();
  EXPECT_TRUE(xp::array_equal(x.grad(), kept.grad()));
}

TEST(Backward, SecondDerivativesOfALossThatIsGivenUp) {
  Variable x(kValues);
  F::sum(F::exp(x * x)).backward({.enable_double_backprop = true});
  Variable g = x.grad_var();
  x.cleargrad();
  F::sum(g).backward();
  Array a = kValues, e = xp::exp(a * a);
  EXPECT_TRUE(xp::allclose(x.grad(), e * (a * a * 4 + 2), 1e-12));
}

TEST(Backward, AGradientThatIsGivenStaysInTheGraph) {
  Variable a(kValues), b(kValues), gy(kValues);
  Variable y = a - b;
  y.set_grad_var(gy);
  y.backward({.enable_double_backprop = true});
  Variable ga = a.grad_var(), gb = b.grad_var();
  Variables second = grad({F::sum(ga * ga) + F::sum(gb)}, {gy});
  EXPECT_TRUE(xp::array_equal(second[0].array(), kValues * 2 - 1));
  // Where it is not differentiated it is memory of its own.
  a.cleargrad();
  y.set_grad_var(gy);
  y.backward();
  EXPECT_NE(a.grad().storage(), gy.array().storage());
}

TEST(Backward, OptimizersGiveUpTheGraphAndReturnTheLoss) {
  for (Device device : testing::test_devices()) {
    struct Net : Chain<Net> {
      L::Linear l1{1, 4}, l2{4, 1};
      Probe::Seen* seen = nullptr;
      void members(Visitor& v) override { v("l1", l1), v("l2", l2); }
      Variable operator()(const Variable& x) const {
        Variable h = F::tanh(apply<Probe>({l1(x)}, seen)[0]);
        seen->function = h.creator();
        return F::sum(l2(h));
      }
    } net;
    net.to(device);
    Probe::Seen seen;
    net.seen = &seen;
    Optimizer optimizer = optimizers::SGD(0.1);
    optimizer.setup(net);
    Variable x = constant(xp::ones({2, 1}, float32, device));
    float expected = net(x).item<float>();
    Variable loss = optimizer.update(net, x);
    EXPECT_EQ(seen.calls, 1);
    EXPECT_FALSE(seen.alive);
    EXPECT_EQ(loss.item<float>(), expected);
    EXPECT_EQ(loss.creator(), nullptr);
  }
}

TEST(Backward, ResidualBlocksWithoutGradientsHoldThreeArraysAtMost) {
  L::ResidualBlock first({.in = 8, .mid = 8, .out = 32, .stride = 1, .bottleneck = true}, true,
                         L::ResNetOptions::torchvision());
  UsingConfig test(&Config::train, false), no_backprop(&Config::enable_backprop, false);
  Variable x = constant(xp::ones({4, 8, 32, 32}, float32));
  (void)first(x);  // oneDNN's layouts of weights
  MemoryReport report(cpu());
  (void)first(x);
  constexpr std::int64_t kOut = 4 * 32 * 32 * 32 * 4;
  EXPECT_GE(report.peak_bytes(), 2 * kOut) << report.str();
  EXPECT_LT(report.peak_bytes(), 3 * kOut + kOut / 2) << report.str();
}

TEST(Backward, OfAVariableWithoutElements) {
  Variable x(xp::zeros({0, 3}));
  Variable y = x * 2.0;
  y.backward();
  EXPECT_EQ(x.grad().shape(), (Shape{0, 3}));
  Variable two(xp::ones({2}));
  EXPECT_THROW((two * 2.0).backward(), ValueError);
}

}  // namespace
}  // namespace rensa

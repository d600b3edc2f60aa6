// Parameters that are updated in a way of their own, or not at all.
#include "rensa/optimizers/parameter_group.h"

#include <gtest/gtest.h>

#include "rensa/array/random_basics.h"
#include "rensa/core/error.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/capture.h"
#include "rensa/links/links.h"
#include "rensa/optimizers/optimizers.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using Values = std::vector<float>;

struct Net : Chain<Net> {
  L::Linear body{3, 4}, head{4, 2};
  explicit Net(Device device) { to(device); }
  void members(Visitor& v) override { v("body", body), v("head", head); }
  Variable operator()(const Variable& x) const { return F::mean(F::square(head(body(x)))); }
};

void set_ones(const Link& link) {
  for (const ParameterRef& p : link.params()) p.set_grad(xp::ones_like(p.array()));
}

Values moved(const ParameterRef& p, const Array& before) {
  return (before - p.array()).ravel().to_vector<float>();
}

bool is_bias(const NamedParameter& p) { return p.path.ends_with("/b"); }

TEST(ParameterGroup, HasValuesAndHooksOfItsOwn) {
  for (Device device : testing::test_devices()) {
    Net net(device);
    optimizers::SGD optimizer(0.5);
    optimizer.setup(net);
    ParameterGroup(net.head).set_hyperparam("lr", 0.25);
    ParameterGroup biases(net, is_bias);
    EXPECT_EQ(biases.parameters().size(), 2u);
    biases.add_hook(optimizer_hooks::GradientHardClipping(-0.5, 0.5));
    std::vector<Array> before;
    for (const ParameterRef& p : net.params()) before.push_back(p.array().copy());
    set_ones(net);
    optimizer.update();
    const float expected[] = {0.5, 0.25, 0.25, 0.125};  // body/W, body/b, head/W, head/b
    std::vector<NamedParameter> named = net.namedparams();
    for (std::size_t i = 0; i < named.size(); ++i) {
      for (float step : moved(named[i].parameter, before[i])) {
        EXPECT_NEAR(step, expected[i], 1e-6) << named[i].path << " on " << device.str();
      }
    }
  }
}

TEST(ParameterGroup, OneHookLooksAtTheGroup) {
  Net net(cpu());
  optimizers::SGD optimizer(1);
  optimizer.setup(net);
  ParameterGroup(net.head).add_hook(optimizer_hooks::GradientClipping(1));
  Array before = net.head.b.array().copy();
  set_ones(net);
  optimizer.update();
  for (float step : moved(net.head.b, before)) EXPECT_NEAR(step, 1 / std::sqrt(10), 1e-6);
}

TEST(ParameterGroup, NeedsAnOptimizerAndANameItHas) {
  Net net(cpu());
  EXPECT_THROW(ParameterGroup(net).set_hyperparam("lr", 1), ValueError);
  optimizers::SGD optimizer;
  optimizer.setup(net);
  EXPECT_THROW(ParameterGroup(net).set_hyperparam("alpha", 1), ValueError);
}

// Values that are changed between the steps, in one group of several parameters and in more groups
// than a launch takes.
TEST(ParameterGroup, CapturedEqualsEagerBitForBit) {
  auto run = [](Device device, bool captured) {
    xp::random::seed(5);
    struct Deep : Chain<Deep> {
      L::Linear l0{4, 4}, l1{4, 4}, l2{4, 4};
      void members(Visitor& v) override { v("l0", l0), v("l1", l1), v("l2", l2); }
    } net;
    net.to(device);
    optimizers::MomentumSGD optimizer(0.1);
    optimizer.setup(net);
    auto f = [&](const Variable& x) {
      auto loss = [&](const Variable& v) { return F::mean(F::square(net.l2(net.l1(net.l0(v))))); };
      return optimizer.update(loss, x);
    };
    auto step = capture(f, {.replay_lists = true});
    Variable x = constant(xp::random::uniform(-1, 1, {2, 4}, float32, cpu()).to(device));
    for (int i = 0; i < 24; ++i) {
      if (i == 6) ParameterGroup(net.l1).set_hyperparam("lr", 0.05);
      if (i == 10 || i == 11) ParameterGroup(net.l1).set_hyperparam("lr", 0.01 * i);
      if (i == 12) net.l1.W.update_rule()->set_hyperparam("lr", 0.2);  // leaves its group's set
      if (i == 16) {
        double lr = 0.01;
        for (const ParameterRef& p : net.params()) p.update_rule()->set_hyperparam("lr", lr *= 1.5);
      }
      if (i == 20) net.l0.disable_update();
      (void)(captured ? step(x) : f(x));
    }
    EXPECT_GE(step.stats().replays, captured ? 5 : 0) << step.stats().last_fallback;
    Values all;
    for (const ParameterRef& p : net.params()) {
      for (float v : p.array().to_vector<float>()) all.push_back(v);
    }
    return all;
  };
  for (Device device : testing::test_devices()) {
    EXPECT_EQ(run(device, true), run(device, false)) << device.str();
  }
}

TEST(Link, FrozenParametersStay) {
  Net net(cpu());
  optimizers::SGD optimizer(1);
  optimizer.setup(net);
  net.body.disable_update();
  Array body = net.body.W.array().copy(), head = net.head.W.array().copy();
  set_ones(net);
  optimizer.update();
  EXPECT_EQ(moved(net.body.W, body), Values(12, 0));
  EXPECT_NE(moved(net.head.W, head), Values(8, 0));
  net.enable_update();
  optimizer.update();
  EXPECT_NE(moved(net.body.W, body), Values(12, 0));
}

}  // namespace
}  // namespace rensa

// Optimizers that a user writes: as text, and as a class.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/array/ufuncs/powers.h"
#include "rensa/array/ufuncs/signs.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/capture.h"
#include "rensa/links/links.h"
#include "rensa/optimizers/optimizers.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using Values = std::vector<double>;

/// Signs of a running mean, from states that do not begin at 0, by the number of the update.
optimizers::ElementwiseOptimizer lion() {
  return optimizers::ElementwiseOptimizer({.name = "Lion",
                                           .states = "m = 0.25, count = 1",
                                           .hyperparameters = "lr = 0.0625, beta = 0.75",
                                           .operation = R"(
         m = beta * m + (1 - beta) * grad;
         param -= lr * V((m > 0) - (m < 0)) / t;
         count += 1;
       )"});
}

/// The same, where the formula is the test's own.
void lion_reference(double& p, double& m, double g, int t) {
  m = 0.75 * m + 0.25 * g;
  p -= 0.0625 * ((m > 0) - (m < 0)) / t;
}

struct SignSGD : OptimizerAlgorithm {
  double lr = 0.5;
  const char* name() const override { return "SignSGD"; }
  NamedNumbers hyperparameters() override { return {{"lr", &lr}}; }
  void update(const UpdateCall& call) override {
    for (const UpdatedParameter& p : call.parameters) p.array -= lr * xp::sign(p.grad);
  }
};

struct ArraySMORMS3 : OptimizerAlgorithm {
  double lr = 0.125, eps = 1e-16;
  const char* name() const override { return "ArraySMORMS3"; }
  std::vector<UpdateState> states() const override { return {{"mem", 1}, {"g", 0}, {"g2", 0}}; }
  NamedNumbers hyperparameters() override { return {{"lr", &lr}, {"eps", &eps}}; }
  void update(const UpdateCall& call) override {
    for (const UpdatedParameter& p : call.parameters) {
      Array &mem = p.rule->states[0], &g = p.rule->states[1], &g2 = p.rule->states[2];
      Array r = 1 / (mem + 1);
      g += r * (p.grad - g);
      g2 += r * (p.grad * p.grad - g2);
      Array x = g * g / (g2 + eps);
      mem *= 1 - x, mem += 1;
      p.array -= p.grad * xp::minimum(x, lr) / (xp::sqrt(g2) + eps);
    }
  }
};

struct One : Chain<One> {
  Parameter p;
  One(Dtype dtype, Device device)
      : p(Initializer(xp::array({1.0, -2.0, 0.5, 0.0, 4.0}).astype(dtype))) {
    to(device);
  }
  void members(Visitor& v) override { v("p", p); }
};

TEST(OwnOptimizer, TextFollowsItsFormula) {
  const Values gradient = {1, -2, 0.5, -0.25, 0};
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float64, float32, float16}) {
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " on " + device.str());
      One model(dtype, device);
      auto optimizer = lion();
      optimizer.setup(model);
      Values expected = model.p.array().to_vector<double>(), m(5, 0.25);
      for (int t = 1; t <= 5; ++t) {
        if (t == 4) optimizer.attribute("beta") = 0.75;
        model.p.set_grad(xp::array(gradient, device).astype(dtype) * t);
        optimizer.update();
        for (std::size_t i = 0; i < 5; ++i) lion_reference(expected[i], m[i], gradient[i] * t, t);
      }
      Values got = model.p.array().to_vector<double>();
      double close = dtype == float16 ? 4e-3 : 1e-6;
      for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(got[i], expected[i], close) << i;
      EXPECT_EQ(model.p.update_rule()->states[1].to_vector<double>(), Values(5, 6));
    }
  }
}

TEST(OwnOptimizer, TextIsCapturedBitForBit) {
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float32, float16}) {
      auto run = [&](bool captured) {
        xp::random::seed(2);
        UsingConfig of(&Config::dtype, dtype);
        auto model = L::Classifier(L::Linear(6, 3));
        model.compute_accuracy = false;
        model.to(device);
        auto optimizer = lion();
        optimizer.use_fp32_update().loss_scaling({.interval = 4});
        optimizer.setup(model);
        Array x = xp::random::normal(0, 1, {8, 6}, float32, cpu()).astype(dtype).to(device);
        Array t = xp::random::randint(0, 3, {8}, int32, cpu()).to(device);
        auto f = [&](const Variable& v) { return optimizer.update(model, v, constant(t)); };
        auto step = capture(f, {.replay_lists = true});
        for (int i = 0; i < 10; ++i) {
          if (i == 6) optimizer.attribute("lr") = 0.03125;
          (void)(captured ? step(constant(x)) : f(constant(x)));
        }
        EXPECT_GE(step.stats().replays, captured ? 4 : 0) << step.stats().last_fallback;
        return model.predictor.W.array().astype(float32).to_vector<float>();
      };
      EXPECT_EQ(run(true), run(false)) << dtype_name(dtype) << " on " << device.str();
    }
  }
}

TEST(OwnOptimizer, TextIsALaunchPerParameterAndOneForAllNumbers) {
  struct Many : Chain<Many> {
    std::vector<Parameter> all;
    void members(Visitor& v) override { v("all", all); }
  } model;
  for (int i = 0; i < 5; ++i) model.all.emplace_back(Initializer(i), Shape{2, i + 1});
  auto optimizer = lion();
  optimizer.setup(model);
  model.all[2].update_rule()->set_hyperparam("lr", 0.5);
  auto step = capture(
      [&](const Variable& x) {
        for (const Parameter& p : model.all) p.set_grad(p.array());
        optimizer.update();
        return x;
      },
      {.rewrite = false, .replay_lists = true});
  for (int i = 0; i < 5; ++i) (void)step(constant(xp::ones({1}, float32, cpu())));
  EXPECT_GT(step.stats().replays, 0) << step.stats().last_fallback;
  EXPECT_EQ(step.stats().operations, 5 + 1);
}

TEST(OwnOptimizer, TextThatCannotBeReadIsRefused) {
  using optimizers::ElementwiseOptimizer;
  EXPECT_THROW(ElementwiseOptimizer(
                   {.name = "x", .states = "m = one", .hyperparameters = "", .operation = ""}),
               ValueError);
  EXPECT_THROW(
      ElementwiseOptimizer({.name = "x", .states = "2m", .hyperparameters = "", .operation = ""}),
      ValueError);
  EXPECT_THROW(
      ElementwiseOptimizer({.name = "x", .states = "m,", .hyperparameters = "", .operation = ""}),
      ValueError);
}

TEST(OwnOptimizer, AClassUpdatesByArrays) {
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float32, float16}) {
      One model(dtype, device);
      Optimizer optimizer(std::make_shared<SignSGD>());
      optimizer.setup(model).use_fp32_update();
      optimizer.add_hook(optimizer_hooks::GradientHardClipping(0, 10));
      model.p.set_grad(xp::array(Values{1, -2, 0.5, 0, 3}, device).astype(dtype));
      optimizer.update();
      EXPECT_EQ(model.p.array().to_vector<double>(), (Values{0.5, -2, 0, 0, 3.5}));
      EXPECT_EQ(optimizer.attribute("lr"), 0.5);
      EXPECT_THROW(optimizer.attribute("momentum"), ValueError);
    }
  }
}

/// Some updates, with a learning rate that is changed now and then.
Values trained(Device device, const Optimizer& optimizer, bool captured) {
  One model(float64, device);
  optimizer.setup(model);
  Array factor = xp::array(Values{1, -2, 0.5, -0.25, 0.75}, device);
  auto f = [&](const Variable& x) {
    return optimizer.update([&] { return F::sum(F::square(model.p - 1.0) * factor * x); });
  };
  auto step = capture(f, {.replay_lists = true});
  for (int i = 0; i < 16; ++i) {
    if (i == 8) optimizer.attribute("lr") = 0.0625;
    Variable x = constant(xp::full({}, 1 + 0.125 * i, float64, device));
    (void)(captured ? step(x) : f(x));
  }
  if (captured) {
    EXPECT_EQ(step.stats().recordings, 2);  // the second one with the second learning rate
    EXPECT_EQ(step.stats().last_fallback, "");
  }
  return model.p.array().to_vector<double>();
}

TEST(OwnOptimizer, AClassMayHaveManyStates) {
  for (Device device : testing::test_devices()) {
    Optimizer own(std::make_shared<ArraySMORMS3>()), again(std::make_shared<ArraySMORMS3>());
    Values got = trained(device, own, false);
    Values expected = trained(device, optimizers::SMORMS3(0.125), false);
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-12) << i;
    EXPECT_EQ(trained(device, again, true), got);
  }
}

/// One that leaves out what has overflowed.
struct CarefulSignSGD : SignSGD {
  bool heeds_enabled() const override { return true; }
  void update(const UpdateCall& call) override {
    for (const UpdatedParameter& p : call.parameters) {
      Array step = xp::sign(p.grad);
      if (call.enabled.defined()) {
        step = xp::where(call.enabled != 0, step, xp::zeros_like(step));
      }
      p.array -= lr * step;
    }
  }
};

TEST(OwnOptimizer, AClassIsToHeedWhatADynamicLossScaleLeavesOut) {
  for (Device device : testing::test_devices()) {
    One model(float32, device);
    auto set_gradient = [&](double last) {
      model.p.set_grad(xp::array(Values{1, -2, 0.5, 0, last}, device).astype(float32));
    };
    Optimizer heedless(std::make_shared<SignSGD>()), careful(std::make_shared<CarefulSignSGD>());
    heedless.setup(model).loss_scaling();
    set_gradient(3);
    std::string text = testing::thrown<NotImplementedError>([&] { heedless.update(); });
    EXPECT_NE(text.find("SignSGD.update"), std::string::npos) << text;
    EXPECT_NE(text.find("heeds_enabled"), std::string::npos) << text;
    EXPECT_EQ(heedless.t(), 0);
    EXPECT_EQ(model.p.grad().to_vector<double>(), (Values{1, -2, 0.5, 0, 3}));
    heedless.loss_scaling({.scale = 2}).update();
    EXPECT_EQ(model.p.array().to_vector<double>(), (Values{0.5, -1.5, 0, 0, 3.5}));
    careful.setup(model).loss_scaling();
    set_gradient(std::numeric_limits<double>::infinity());
    careful.update();
    EXPECT_EQ(model.p.array().to_vector<double>(), (Values{0.5, -1.5, 0, 0, 3.5}));
    set_gradient(3);
    careful.update();
    EXPECT_EQ(model.p.array().to_vector<double>(), (Values{0, -1, -0.5, 0, 3}));
  }
}

}  // namespace
}  // namespace rensa

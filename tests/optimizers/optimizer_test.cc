// Optimizers against their formulas, and what they hold on to.
#include "rensa/optimizers/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "rensa/array/random_basics.h"
#include "rensa/core/error.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/capture.h"
#include "rensa/links/links.h"
#include "rensa/optimizers/optimizers.h"
#include "tests/testing.h"

namespace rensa {
namespace {

struct Scalars : Chain<Scalars> {
  Parameter a, b;
  Scalars(Dtype dtype, Device device)
      : a(Initializer(xp::array({1.0, -2.0, 0.5}).astype(dtype))),
        b(Initializer(xp::full({2, 2}, 3.0, dtype))) {
    to_device(device);
  }
  void members(Visitor& v) override { v("a", a), v("b", b); }
};

/// The gradient of element `i` at step `t` (from 1): the same for optimizer and reference.
double gradient(std::size_t i, int t) {
  return std::sin(static_cast<double>(i) + 0.37 * t) + 0.1 * static_cast<double>(i);
}

/// One element's update, in double: parameter, states (0 at first), gradient, step (from 1).
using Reference = void (*)(double& p, double (&s)[3], double g, int t);

struct Case {
  const char* name;
  Optimizer optimizer;
  Reference update;
};

/// The moments of Adam with beta1 = 0.8 and beta2 = 0.95, and the step size that goes with them.
double adam_step(double alpha, double (&s)[3], double g, int t) {
  s[0] = 0.8 * s[0] + 0.2 * g;
  s[1] = 0.95 * s[1] + 0.05 * g * g;
  s[2] = std::max(s[2], s[1]);
  return alpha * std::sqrt(1 - std::pow(0.95, t)) / (1 - std::pow(0.8, t));
}
constexpr optimizers::AdamOptions kAdam = {.alpha = 0.01, .beta1 = 0.8, .beta2 = 0.95};

// clang-format off
std::vector<Case> cases() {
  using namespace optimizers;
  return {
      {"SGD", SGD(0.1), [](double& p, double(&)[3], double g, int) { p -= 0.1 * g; }},
      {"MomentumSGD", MomentumSGD({.lr = 0.05, .momentum = 0.8}),
       [](double& p, double(&s)[3], double g, int) { p += s[0] = 0.8 * s[0] - 0.05 * g; }},
      {"CorrectedMomentumSGD", CorrectedMomentumSGD(0.05, 0.8),
       [](double& p, double(&s)[3], double g, int) { p += 0.05 * (s[0] = 0.8 * s[0] - g); }},
      {"NesterovAG", NesterovAG(0.05, 0.8),
       [](double& p, double(&s)[3], double g, int) {
         double before = s[0];  // the form of the paper: a step along the last velocity comes first
         s[0] = 0.8 * s[0] - 0.05 * g;
         p += 0.8 * 0.8 * before - (1 + 0.8) * 0.05 * g;
       }},
      {"Adam", Adam(),
       [](double& p, double(&s)[3], double g, int t) {
         s[0] += (1 - 0.9) * (g - s[0]);
         s[1] += (1 - 0.999) * (g * g - s[1]);
         double step = 0.001 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
         p -= step * s[0] / (std::sqrt(s[1]) + 1e-8);
       }},
      {"AdamW", AdamW({.alpha = 0.01, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-4, .eta = 0.5, .weight_decay_rate = 0.02}),
       [](double& p, double(&s)[3], double g, int t) {
         double step = adam_step(0.01, s, g, t);
         p -= 0.5 * (step * s[0] / (std::sqrt(s[1]) + 1e-4) + 0.02 * p);
       }},
      {"AMSGrad", AMSGrad(kAdam),
       [](double& p, double(&s)[3], double g, int t) {
         double step = adam_step(0.01, s, g, t);
         p -= step * s[0] / (std::sqrt(s[2]) + 1e-8);
       }},
      {"AdaBound", AdaBound(kAdam),
       [](double& p, double(&s)[3], double g, int t) {
         double step = adam_step(0.01, s, g, t) / (std::sqrt(s[1]) + 1e-8);
         p -= std::clamp(step, 0.1 * (1 - 1 / (0.001 * t + 1)), 0.1 * (1 + 1 / (0.001 * t))) * s[0];
       }},
      {"AMSBound", AMSBound({.alpha = 0.01, .beta1 = 0.8, .beta2 = 0.95, .final_lr = 0.02, .gamma = 0.5}),
       [](double& p, double(&s)[3], double g, int t) {
         double step = adam_step(0.01, s, g, t) / (std::sqrt(s[2]) + 1e-8);
         p -= std::clamp(step, 0.02 * (1 - 1 / (0.5 * t + 1)), 0.02 * (1 + 1 / (0.5 * t))) * s[0];
       }},
      {"AdaGrad", AdaGrad(0.02),
       [](double& p, double(&s)[3], double g, int) {
         s[0] += g * g;
         p -= 0.02 * g / (std::sqrt(s[0]) + 1e-8);
       }},
      {"AdaDelta", AdaDelta({.rho = 0.9, .eps = 1e-3}),
       [](double& p, double(&s)[3], double g, int) {
         s[0] = 0.9 * s[0] + 0.1 * g * g;
         double dx = std::sqrt((s[1] + 1e-3) / (s[0] + 1e-3)) * g;
         s[1] = 0.9 * s[1] + 0.1 * dx * dx;
         p -= dx;
       }},
      {"RMSprop", RMSprop({.lr = 0.02, .alpha = 0.9}),
       [](double& p, double(&s)[3], double g, int) {
         s[0] = 0.9 * s[0] + 0.1 * g * g;
         p -= 0.02 * g / (std::sqrt(s[0]) + 1e-8);
       }},
      {"RMSprop with eps inside", RMSprop({.lr = 0.02, .alpha = 0.9, .eps = 0.01, .eps_inside_sqrt = true}),
       [](double& p, double(&s)[3], double g, int) {
         s[0] = 0.9 * s[0] + 0.1 * g * g;
         p -= 0.02 * g / std::sqrt(s[0] + 0.01);
       }},
      {"RMSpropGraves", RMSpropGraves({.lr = 0.01, .alpha = 0.9, .momentum = 0.5, .eps = 0.01}),
       [](double& p, double(&s)[3], double g, int) {
         s[0] = 0.9 * s[0] + 0.1 * g * g;
         s[1] = 0.9 * s[1] + 0.1 * g;
         p += s[2] = 0.5 * s[2] - 0.01 * g / std::sqrt(s[0] - s[1] * s[1] + 0.01);
       }},
      {"SMORMS3", SMORMS3(0.05),
       [](double& p, double(&s)[3], double g, int t) {
         if (t == 1) s[0] = 1;
         double r = 1 / (s[0] + 1);
         s[1] = (1 - r) * s[1] + r * g;
         s[2] = (1 - r) * s[2] + r * g * g;
         double x = s[1] * s[1] / (s[2] + 1e-16);
         s[0] = 1 + s[0] * (1 - x);
         p -= g * std::min(0.05, x) / (std::sqrt(s[2]) + 1e-16);
       }},
      {"MSVAG", MSVAG({.lr = 0.05, .beta = 0.8, .eta = 0.5, .weight_decay_rate = 0.02}),
       [](double& p, double(&s)[3], double g, int t) {
         double power = std::pow(0.8, t), b = 0.2;
         double rho = std::min(b * b * (1 - power * power) / ((1 - power) * (1 - power) * (1 - 0.64)), 0.9999);
         s[0] = 0.8 * s[0] + b * g;
         s[1] = 0.8 * s[1] + b * g * g;
         double m = s[0] / (1 - power), variance = (s[1] / (1 - power) - m * m) / (1 - rho);
         double factor = std::clamp(m * m / (m * m + rho * variance), 0.0, 1.0);
         p -= 0.5 * (0.05 * m * factor + 0.02 * p);
       }},
  };
}
// clang-format on

void set_gradient(const ParameterRef& p, int t) {
  std::vector<double> g(static_cast<std::size_t>(p.size()));
  for (std::size_t i = 0; i < g.size(); ++i) g[i] = gradient(i, t);
  p.set_grad(xp::array(g, p.array().device()).reshape(p.shape()).astype(p.dtype()));
}

TEST(Optimizer, FollowsTheFormulaForManySteps) {
  const std::pair<Dtype, double> tolerances[] = {{float64, 1e-12}, {float32, 2e-5}};
  const int steps = testing::quick() ? 20 : 200;
  for (Device device : testing::test_devices()) {
    for (auto [dtype, tolerance] : tolerances) {
      for (const Case& c : cases()) {
        SCOPED_TRACE(std::string(c.name) + " on " + device.str());
        Scalars model(dtype, device);
        c.optimizer.setup(model);
        std::vector<double> expected = model.a.array().to_vector<double>();
        double states[3][3] = {};
        for (int t = 1; t <= steps; ++t) {
          set_gradient(model.a, t);
          set_gradient(model.b, t);
          c.optimizer.update();
          for (std::size_t i = 0; i < 3; ++i) c.update(expected[i], states[i], gradient(i, t), t);
        }
        EXPECT_EQ(c.optimizer.t(), steps);
        std::vector<double> got = model.a.array().to_vector<double>();
        for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(got[i], expected[i], tolerance);
      }
    }
  }
}

TEST(Optimizer, CapturedEqualsEagerBitForBit) {
  auto run = [](std::size_t k, Dtype dtype, Device device, bool captured) {
    Optimizer optimizer = cases()[k].optimizer;
    Scalars model(dtype, device);
    optimizer.setup(model);
    auto f = [&](const Variable& x) {
      return optimizer.update(
          [&](const Variable& v) {
            return (model.a * model.a * v).sum() + (model.b * model.b * model.b).sum();
          },
          x);
    };
    auto step = capture(f, {.replay_lists = true});
    Variable x = constant(xp::array({0.5, 1.5, -1.0}, device).astype(dtype));
    for (int i = 0; i < 10; ++i) (void)(captured ? step(x) : f(x));
    EXPECT_GE(step.stats().replays, captured ? 5 : 0) << step.stats().last_fallback;
    std::vector<double> all = model.a.array().to_vector<double>();
    for (double v : model.b.array().to_vector<double>()) all.push_back(v);
    return all;
  };
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float32, float64, float16}) {
      for (std::size_t k = 0; k < cases().size(); ++k) {
        EXPECT_EQ(run(k, dtype, device, true), run(k, dtype, device, false))
            << cases()[k].name << " on " << device.str();
      }
    }
  }
}

/// What is done before step `i` of a training.
struct Between {
  const char* what;
  Optimizer (*make)();
  void (*act)(const Optimizer& optimizer, Scalars& model, int i);
};

void update_b_alone(const Optimizer& optimizer, Scalars& model) {
  model.cleargrads();
  model.b.set_grad(xp::ones_like(model.b.array()));
  optimizer.update();
}

std::vector<Between> in_between() {
  auto adam = [] { return Optimizer(optimizers::Adam(0.125)); };
  auto noisy = [] { return optimizers::SGD(0.125).add_hook(optimizer_hooks::GradientNoise(0.5)); };
  return {
      {"left out", adam,
       [](const Optimizer&, Scalars& model, int i) {
         if (i == 6) model.b.set_update_enabled(false);
       }},
      {"let in", adam,
       [](const Optimizer&, Scalars& model, int i) { model.b.set_update_enabled(i >= 6); }},
      {"set up again", adam,
       [](const Optimizer& optimizer, Scalars& model, int i) {
         if (i == 6) optimizer.setup(model);
       }},
      {"counts that go apart", adam,
       [](const Optimizer& optimizer, Scalars& model, int i) {
         if (i == 6) update_b_alone(optimizer, model);
       }},
      {"counts that a hook asks for", noisy, [](const Optimizer& optimizer, Scalars& model, int i) {
         if (i == 6) update_b_alone(optimizer, model);
       }}};
}

TEST(Optimizer, CapturedStepsSeeWhatIsDoneBetweenThem) {
  auto run = [](const Between& between, Device device, bool captured) {
    xp::random::seed(1);
    Optimizer optimizer = between.make();
    Scalars model(float32, device);
    optimizer.setup(model);
    auto f = [&](const Variable& x) {
      auto loss = [&](const Variable& v) {
        return (model.a * v).sum() + (model.b * model.b).sum();
      };
      return optimizer.update(loss, x);
    };
    auto step = capture(f, {.replay_lists = true});
    Variable x = constant(xp::array({0.5, 1.5, -1.0}, device).astype(float32));
    for (int i = 0; i < 12; ++i) {
      if (captured && i == 6) {
        EXPECT_GE(step.stats().replays, 1) << step.stats().last_fallback;
      }
      between.act(optimizer, model, i);
      (void)(captured ? step(x) : f(x));
    }
    std::vector<double> all = model.a.array().to_vector<double>();
    for (double v : model.b.array().to_vector<double>()) all.push_back(v);
    return all;
  };
  for (Device device : testing::test_devices()) {
    for (const Between& between : in_between()) {
      EXPECT_EQ(run(between, device, true), run(between, device, false))
          << between.what << " on " << device.str();
    }
  }
}

TEST(Optimizer, ACapturedStepOfParametersThatAnotherOptimizerTookIsAnError) {
  Scalars model(float32, cpu());
  optimizers::Adam optimizer, other;
  optimizer.setup(model);
  auto f = [&](const Variable& x) {
    return optimizer.update([&](const Variable& v) { return (model.a * v).sum(); }, x);
  };
  auto step = capture(f, {.replay_lists = true});
  Variable x = constant(xp::ones({3}, float32, cpu()));
  for (int i = 0; i < 6; ++i) (void)step(x);
  EXPECT_GE(step.stats().replays, 1) << step.stats().last_fallback;
  other.setup(model);
  EXPECT_THROW(step(x), ValueError);
}

TEST(Optimizer, HalfParametersMove) {
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float16, bfloat16}) {
      Scalars model(dtype, device);
      optimizers::SGD optimizer(0.5);
      optimizer.setup(model);
      model.a.set_grad(xp::ones({3}, dtype, device));
      optimizer.update();
      EXPECT_EQ(model.a.array().to_vector<float>(), (std::vector<float>{0.5, -2.5, 0}));
    }
  }
}

TEST(Optimizer, LeavesParametersWithoutGradientAlone) {
  Scalars model(float32, cpu());
  optimizers::Adam optimizer;
  optimizer.setup(model);
  set_gradient(model.a, 1);
  optimizer.update();
  EXPECT_EQ(model.b.array().to_vector<float>(), std::vector<float>(4, 3));
  EXPECT_EQ(model.a.update_rule()->t, 1);
  EXPECT_EQ(model.b.update_rule()->t, 0);
  // b's first update is its first, whatever the others have had.
  set_gradient(model.a, 2);
  set_gradient(model.b, 1);
  optimizer.update();
  float expected = 3 - 0.001f;  // Adam's first step is alpha, against the gradient's sign
  EXPECT_NEAR(model.b.array()[1][1].item<float>(), expected, 1e-6);
  model.b.set_update_enabled(false);
  std::vector<float> before = model.b.array().to_vector<float>();
  optimizer.update();
  EXPECT_EQ(model.b.array().to_vector<float>(), before);
}

TEST(Optimizer, TrainsALazyModel) {
  for (Device device : testing::test_devices()) {
    xp::random::seed(2);
    auto model = L::Classifier(L::Linear(2));
    model.to_device(device);
    optimizers::SGD optimizer(1.0);
    optimizer.setup(model);
    Array x = xp::random::uniform(-1, 1, {64, 2}, float32, cpu());
    Array t = (x[{Slice(), 0}] < x[{Slice(), 1}]).astype(int64).to(device);
    x = x.to(device);
    float first = optimizer.update(model, x, t).item<float>(), last = first;
    for (int i = 0; i < 100; ++i) last = optimizer.update(model, x, t).item<float>();
    EXPECT_LT(last, first / 3);
    EXPECT_EQ(optimizer.t(), 101);
  }
}

TEST(Optimizer, FollowsAMovedModel) {
  auto optimizer = optimizers::SGD(1.0);
  {
    Scalars model(float32, cpu());
    optimizer.setup(model);
    Scalars moved = std::move(model);
    EXPECT_EQ(&optimizer.target(), &moved);
    moved.a.set_grad(xp::ones({3}));
    optimizer.update();
    EXPECT_EQ(moved.a.array().to_vector<float>(), (std::vector<float>{0, -3, -0.5}));
    // A copy is another model.
    Scalars copy = moved;
    copy.a.set_grad(xp::ones({3}));
    optimizer.update();
    EXPECT_EQ(copy.a.array().to_vector<float>(), (std::vector<float>{0, -3, -0.5}));
  }
  EXPECT_THROW(optimizer.update(), ValueError);
  EXPECT_THROW(optimizers::Adam().update(), ValueError);
}

TEST(Optimizer, HandlesShare) {
  Optimizer optimizer = optimizers::SGD(1.0);
  Optimizer same = optimizer;
  same.attribute("lr") = 0.25;
  EXPECT_EQ(optimizer.attribute("lr"), 0.25);
  EXPECT_THROW(optimizer.attribute("alpha"), ValueError);
  same.new_epoch();
  EXPECT_EQ(optimizer.epoch(), 1);
}

TEST(Optimizer, TwoOptimizersForOneParameterIsAnError) {
  Scalars model(float32, cpu());
  optimizers::SGD first(1.0);
  optimizers::Adam second;
  first.setup(model);
  second.setup(model);
  set_gradient(model.a, 1);
  second.update();
  EXPECT_THROW(first.update(), ValueError);
  first.setup(model);
  first.update();
}

TEST(Optimizer, ReplacedPartsAreTrainedToo) {
  auto model = L::Classifier(L::Linear(2, 2));
  optimizers::SGD optimizer(1.0);
  optimizer.setup(model);
  model.predictor = L::Linear(2, 3, {.initialW = 0});
  optimizer.update(model, xp::ones({1, 2}), xp::array({1}));
  EXPECT_NE(model.predictor.W.array()[1][0].item<float>(), 0);
}

struct Forgetful : Chain<Forgetful> {
  L::Linear l1{2, 2}, l2{2, 1};
  void members(Visitor& v) override { v("l1", l1); }
  Variable operator()(const Variable& x) const { return F::mean(l2(l1(x))); }
};

TEST(Optimizer, AParameterThatNobodyNamesIsFoundInDebugMode) {
  UsingConfig debug(&Config::debug, true);
  Forgetful model;
  optimizers::SGD optimizer(1.0);
  optimizer.setup(model);
  Array before = model.l1.W.array().copy();
  auto update = [&] { (void)optimizer.update(model, xp::ones({3, 2})); };
  for (int i = 0; i < 2; ++i) {
    std::string text = testing::thrown<ValueError>(update);
    EXPECT_NE(text.find("SGD.update: a parameter \"W\" cpu (1, 2) float32"), std::string::npos)
        << text;
    EXPECT_NE(text.find("members(Visitor&)"), std::string::npos) << text;
  }
  EXPECT_TRUE(xp::array_equal(model.l1.W.array(), before));
  EXPECT_EQ(optimizer.t(), 0);
  model.l2.W.set_update_enabled(false);
  EXPECT_NE(testing::thrown<ValueError>(update).find("\"b\""), std::string::npos);
  model.l2.b.set_update_enabled(false);
  EXPECT_NO_THROW(update());
  EXPECT_EQ(optimizer.t(), 1);
}

TEST(Optimizer, AnotherModelsParametersAreNamed) {
  // A fixed network in front, which nobody trains, and a critic with an optimizer of its own.
  UsingConfig debug(&Config::debug, true);
  L::Linear source(2, 2), fixed(2, 2), critic(2, 1);
  fixed.copyparams(source);
  L::Linear target = source.copy();
  Scalars model(float32, cpu());
  optimizers::SGD optimizer(0.1), other;
  optimizer.setup(model);
  other.setup(critic);
  Variable loss = F::mean(critic(target(fixed(xp::ones({1, 2}))))) * model.a.sum();
  model.cleargrads();
  loss.backward();
  ASSERT_TRUE(fixed.W.grad().defined() && critic.W.grad().defined());
  EXPECT_NO_THROW(optimizer.update());
  // One that is gone, or whose gradient was cleared, is nobody's mistake.
  {
    Parameter alone(Initializer(1), {});
    (alone * alone).backward();
  }
  Parameter cleared(Initializer(1), {});
  (cleared * cleared).backward();
  cleared.cleargrad();
  EXPECT_NO_THROW(optimizer.update());
}

TEST(Optimizer, WithoutDebugModeNobodyAsksForNames) {
  Forgetful model;
  optimizers::SGD optimizer(1.0);
  optimizer.setup(model);
  EXPECT_NO_THROW((void)optimizer.update(model, xp::ones({3, 2})));
}

TEST(Optimizer, WhatIsNoLossIsRefused) {
  L::Linear model(2, 3);
  optimizers::Adam optimizer;
  optimizer.setup(model);
  std::string text = testing::thrown<ValueError>([&] {
    (void)optimizer.update(model, xp::ones({4, 2}));
  });
  EXPECT_NE(text.find("Adam.update: Linear gave cpu (4, 3) float32"), std::string::npos) << text;
  EXPECT_NE(text.find("L::Classifier(model)"), std::string::npos) << text;
  auto nothing = [] { return Variable(); };
  EXPECT_THROW((void)optimizer.update(nothing), ValueError);
  auto constant_loss = [] { return constant(xp::ones({})); };
  EXPECT_THROW((void)optimizer.update(constant_loss), ValueError);
  EXPECT_EQ(optimizer.t(), 0);
}

TEST(Optimizer, GradientsNeedNotBeContiguous) {
  Scalars model(float32, cpu());
  optimizers::SGD optimizer(1.0);
  optimizer.setup(model);
  model.b.set_grad(xp::array({{1.f, 2.f}, {3.f, 4.f}}).T());
  optimizer.update();
  EXPECT_EQ(model.b.array().to_vector<float>(), (std::vector<float>{2, 0, 1, -1}));
}

TEST(Optimizer, StatesFollowTheModelToItsDevice) {
  RENSA_NEEDS_GPUS(1);
  Scalars model(float32, cpu());
  optimizers::MomentumSGD optimizer;
  optimizer.setup(model);
  set_gradient(model.a, 1);
  optimizer.update();
  model.to_gpu(0);
  set_gradient(model.a, 2);
  optimizer.update();
  EXPECT_EQ(model.a.update_rule()->states[0].device(), gpu(0));
}

TEST(Optimizer, ModelsOnTwoDevices) {
  RENSA_NEEDS_GPUS(1);
  Scalars model(float32, cpu());
  model.b.to_device(gpu(0));
  optimizers::SGD optimizer(1.0);
  optimizer.setup(model);
  model.a.set_grad(xp::ones({3}));
  model.b.set_grad(xp::ones({2, 2}, float32, gpu(0)));
  optimizer.update();
  EXPECT_EQ(model.a.array().to_vector<float>(), (std::vector<float>{0, -3, -0.5}));
  EXPECT_EQ(model.b.array().to_vector<float>(), std::vector<float>(4, 2));
}

}  // namespace
}  // namespace rensa

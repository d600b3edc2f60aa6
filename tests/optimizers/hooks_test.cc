// Hooks of optimizers against their formulas, eagerly and captured.
#include "rensa/optimizers/hooks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "rensa/array/random_basics.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/capture.h"
#include "rensa/links/links.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/serializers/npz.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using Values = std::vector<double>;

struct Two : Chain<Two> {
  Parameter a, b;
  Two(Dtype dtype, Device device)
      : a(Initializer(xp::array({1.0, -2.0, 0.5, 0.0}).astype(dtype))),
        b(Initializer(xp::array({-3.0, 0.25}).astype(dtype))) {
    to_device(device);
  }
  void members(Visitor& v) override { v("a", a), v("b", b); }
};

const Values kA = {1, -2, 0.5, 0}, kB = {-3, 0.25};
const Values kGradA = {0.5, 2, -1, 0.25}, kGradB = {-0.75, 4};

double norm(const Values& values) {
  double sum = 0;
  for (double v : values) sum += v * v;
  return std::sqrt(sum);
}

struct HookCase {
  const char* name;
  std::function<void(const Optimizer&)> add;
  /// A gradient afterwards, of the parameter's element, its gradient, and those of its array.
  std::function<double(double p, double g, const Values& ps, const Values& gs)> expected;
};

std::vector<HookCase> hook_cases() {
  using namespace optimizer_hooks;
  const double all = std::hypot(norm(kGradA), norm(kGradB));
  return {
      {"WeightDecay", [](const Optimizer& o) { o.add_hook(WeightDecay(0.1)); },
       [](double p, double g, const Values&, const Values&) { return g + 0.1 * p; }},
      {"Lasso", [](const Optimizer& o) { o.add_hook(Lasso(0.1)); },
       [](double p, double g, const Values&, const Values&) {
         return g + 0.1 * ((p > 0) - (p < 0));
       }},
      {"GradientClipping", [](const Optimizer& o) { o.add_hook(GradientClipping(2)); },
       [all](double, double g, const Values&, const Values&) { return g * 2 / all; }},
      {"GradientClipping of small ones",
       [](const Optimizer& o) { o.add_hook(GradientClipping(100)); },
       [](double, double g, const Values&, const Values&) { return g; }},
      {"GradientHardClipping",
       [](const Optimizer& o) { o.add_hook(GradientHardClipping(-0.8, 1.5)); },
       [](double, double g, const Values&, const Values&) { return std::clamp(g, -0.8, 1.5); }},
      {"GradientLARS", [](const Optimizer& o) { o.add_hook(GradientLARS(0.01, 0.05)); },
       [](double p, double g, const Values& ps, const Values& gs) {
         return (g + 0.05 * p) * norm(ps) / (1e-9 + norm(gs) + 0.05 * norm(ps));
       }},
      {"GradientLARS of small parameters",
       [](const Optimizer& o) { o.add_hook(GradientLARS(10, 0.05)); },
       [](double p, double g, const Values&, const Values&) { return g + 0.05 * p; }},
      {"two hooks, in their order",
       [](const Optimizer& o) { o.add_hook(WeightDecay(1)).add_hook(GradientHardClipping(-1, 1)); },
       [](double p, double g, const Values&, const Values&) { return std::clamp(g + p, -1., 1.); }},
      {"a function",
       [](const Optimizer& o) {
         o.add_hook(Function("Double", [](const UpdateCall& call) {
           for (const UpdatedParameter& p : call.parameters) p.grad *= 2;
         }));
       },
       [](double, double g, const Values&, const Values&) { return 2 * g; }},
  };
}

TEST(Hooks, FollowTheirFormulas) {
  for (Device device : testing::test_devices()) {
    for (auto [dtype, tolerance] : {std::pair{float64, 1e-12}, {float32, 1e-5}, {float16, 1e-2}}) {
      for (const HookCase& c : hook_cases()) {
        SCOPED_TRACE(std::string(c.name) + " on " + device.str());
        Two model(dtype, device);
        optimizers::SGD optimizer(0.5);
        optimizer.setup(model);
        c.add(optimizer);
        model.a.set_grad(xp::array(kGradA, device).astype(dtype));
        model.b.set_grad(xp::array(kGradB, device).astype(dtype));
        optimizer.update();
        auto check = [&, tolerance = tolerance](const Parameter& p, const Values& ps,
                                                const Values& gs) {
          Values got = p.array().to_vector<double>();
          for (std::size_t i = 0; i < ps.size(); ++i) {
            EXPECT_NEAR(got[i], ps[i] - 0.5 * c.expected(ps[i], gs[i], ps, gs), tolerance) << i;
          }
        };
        check(model.a, kA, kGradA);
        check(model.b, kB, kGradB);
      }
    }
  }
}

TEST(SquaredSums, OfManyArraysOfAnySizeAndDtype) {
  xp::random::seed(8);
  const std::int64_t sizes[] = {0, 1, 77, 4096, 100003};
  const Dtype dtypes[] = {float32, float64, float16, bfloat16};
  for (Device device : testing::test_devices()) {
    std::vector<Array> arrays;
    Values expected;
    double total = 0;
    for (std::size_t i = 0; i < 150; ++i) {
      std::int64_t size = i == 3 ? 300000 : sizes[i % 5];
      Array a = xp::random::normal(0, 1, {size}, float32, cpu()).astype(dtypes[i % 4]);
      double sum = 0;
      for (double v : a.to_vector<double>()) sum += v * v;
      expected.push_back(sum);
      total += sum;
      arrays.push_back(a.to(device));
    }
    expected.push_back(total);
    Values got = squared_sums(arrays).to_vector<double>();
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i], expected[i], 1e-12 * (1 + expected[i])) << i;
    }
    EXPECT_EQ(squared_sums(arrays).to_vector<double>(), got);  // in one order
  }
}

TEST(Hooks, OfOneParameterComeAfterTheOptimizers) {
  for (Device device : testing::test_devices()) {
    Two model(float64, device);
    optimizers::SGD optimizer(1.0);
    optimizer.setup(model);
    optimizer.add_hook(optimizer_hooks::WeightDecay(1));
    model.b.update_rule()->add_hook(
        std::make_shared<optimizer_hooks::GradientHardClipping>(-0.5, 0.5));
    model.a.set_grad(xp::array(kGradA, device));
    model.b.set_grad(xp::array(kGradB, device));
    optimizer.update();
    Values a = model.a.array().to_vector<double>(), b = model.b.array().to_vector<double>();
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i], kA[i] - (kGradA[i] + kA[i]));
    EXPECT_EQ(b, (Values{-3 + 0.5, 0.25 - 0.5}));
  }
}

TEST(Hooks, AfterTheUpdateSeeItsResult) {
  Two model(float64, cpu());
  optimizers::SGD optimizer(1.0);
  optimizer.setup(model);
  Values seen;
  optimizer.add_hook(optimizer_hooks::Function(
      "look", [&](const UpdateCall& call) { seen = call.parameters[0].array.to_vector<double>(); },
      OptimizerHook::Timing::post));
  model.a.set_grad(xp::array(kGradA));
  optimizer.update();
  EXPECT_EQ(seen, model.a.array().to_vector<double>());
  EXPECT_NE(seen, kA);
}

TEST(Hooks, HaveNamesOfTheirOwn) {
  Two model(float32, cpu());
  optimizers::SGD optimizer;
  optimizer.setup(model);
  optimizer.add_hook(optimizer_hooks::WeightDecay(1));
  EXPECT_THROW(optimizer.add_hook(optimizer_hooks::WeightDecay(2)), ValueError);
  EXPECT_THROW(optimizer.remove_hook("Lasso"), ValueError);
  optimizer.remove_hook("WeightDecay");
  optimizer.add_hook(optimizer_hooks::WeightDecay(2));
  auto lasso = std::make_shared<optimizer_hooks::Lasso>(1);
  model.a.update_rule()->add_hook(lasso);
  EXPECT_THROW(model.a.update_rule()->add_hook(lasso), ValueError);
  model.a.update_rule()->remove_hook("Lasso");
  EXPECT_THROW(model.a.update_rule()->remove_hook("Lasso"), ValueError);
}

TEST(Hooks, NoHookIsRefused) {
  Two model(float32, cpu());
  optimizers::SGD optimizer;
  optimizer.setup(model);
  EXPECT_THROW(optimizer.add_hook(std::shared_ptr<optimizer_hooks::Lasso>()), ValueError);
  EXPECT_THROW(model.a.update_rule()->add_hook(nullptr), ValueError);
}

TEST(Hooks, GradientsThatShareMemoryAreChangedOnce) {
  for (Device device : testing::test_devices()) {
    Two model(float64, device);
    optimizers::SGD optimizer(1.0);
    optimizer.setup(model);
    optimizer.add_hook(optimizer_hooks::GradientHardClipping(-1, 1));
    optimizer.add_hook(optimizer_hooks::Function("add", [](const UpdateCall& call) {
      for (const UpdatedParameter& p : call.parameters) p.grad += 1;
    }));
    Array shared = xp::full({4}, 3.0, float64, device);
    model.a.set_grad(shared);
    model.b.set_grad(shared[{Slice(0, 2)}]);
    optimizer.update();
    EXPECT_EQ(model.a.array().to_vector<double>(), (Values{-1, -4, -1.5, -2}));
    EXPECT_EQ(model.b.array().to_vector<double>(), (Values{-5, -1.75}));
  }
}

TEST(Hooks, NoiseHasTheDeviationOfTheStep) {
  for (Device device : testing::test_devices()) {
    xp::random::seed(4);
    L::Linear model(1000, 100);
    model.to(device);
    optimizers::SGD optimizer(1.0);
    optimizer.setup(model);
    optimizer.add_hook(optimizer_hooks::GradientNoise(0.3));
    for (int t = 0; t < 2; ++t) {
      model.W.array().fill(0);
      model.W.set_grad(xp::zeros_like(model.W.array()));
      optimizer.update();
      double deviation = model.W.array().std().item<float>();
      EXPECT_NEAR(deviation, std::sqrt(0.3 / std::pow(1 + t, 0.55)), 0.01);
    }
  }
}

// --- moving averages ---

TEST(MovingAverage, FollowsItsFormula) {
  for (Device device : testing::test_devices()) {
    for (auto [dtype, tolerance] : {std::pair{float64, 1e-12}, {float32, 1e-6}, {float16, 2e-3}}) {
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " on " + device.str());
      Two model(dtype, device);
      Two average = model.copy(CopyMode::copy);
      optimizers::SGD optimizer(0.5);
      optimizer.use_fp32_update();
      optimizer.setup(model);
      optimizer.add_hook(optimizer_hooks::MovingAverage(model, average, 0.999));
      Values p = kA, mean = kA;
      for (int t = 0; t < 20; ++t) {
        model.a.set_grad(xp::array(kGradA, device).astype(dtype));
        optimizer.update();
        for (std::size_t i = 0; i < p.size(); ++i) {
          p[i] -= 0.5 * kGradA[i];
          mean[i] += 0.001 * (p[i] - mean[i]);
        }
      }
      Values got = average.a.array().to_vector<double>();
      for (std::size_t i = 0; i < p.size(); ++i) EXPECT_NEAR(got[i], mean[i], tolerance) << i;
      EXPECT_EQ(average.b.array().to_vector<double>(), kB);  // which was not updated
      EXPECT_EQ(average.a.dtype(), dtype);
    }
  }
}

TEST(MovingAverage, IsSavedWithTheOptimizer) {
  testing::TemporaryFolder folder;
  auto make = [](Two& model, Two& average) {
    optimizers::SGD optimizer(0.5);
    optimizer.use_fp32_update();
    optimizer.setup(model);
    optimizer.add_hook(optimizer_hooks::MovingAverage(model, average, 0.75));
    return optimizer;
  };
  auto step = [](Two& model, const Optimizer& optimizer) {
    model.a.set_grad(xp::array(kGradA).astype(float16));
    optimizer.update();
  };
  Two model(float16, cpu()), average = model.copy(CopyMode::copy);
  Optimizer optimizer = make(model, average);
  step(model, optimizer), step(model, optimizer);
  serializers::save_npz(folder / "model.npz", model);
  serializers::save_npz(folder / "optimizer.npz", optimizer);
  Two again(float16, cpu()), twin = again.copy(CopyMode::copy);
  Optimizer other = make(again, twin);
  serializers::load_npz(folder / "model.npz", again);
  step(again, other);  // another average, which the file replaces
  serializers::load_npz(folder / "model.npz", again);
  serializers::load_npz(folder / "optimizer.npz", other);
  step(model, optimizer), step(again, other);
  EXPECT_EQ(twin.a.array().to_vector<double>(), average.a.array().to_vector<double>());
}

TEST(MovingAverage, OfALazyModelBeginsWithItsFirstUpdate) {
  for (Device device : testing::test_devices()) {
    L::Linear model(2), average = model.copy(CopyMode::copy);
    model.to(device);
    optimizers::SGD optimizer(0.5);
    optimizer.setup(model);
    optimizer.add_hook(optimizer_hooks::MovingAverage(model, average, 0.5));
    auto loss = [&](const Variable& x) { return F::sum(model(x)); };
    optimizer.update(loss, constant(xp::ones({1, 3}, float32, device)));
    EXPECT_TRUE(xp::array_equal(average.W.array(), model.W.array()));
    EXPECT_EQ(average.W.device(), device);
  }
}

TEST(MovingAverage, TakesTwoModelsOfTheSameParameters) {
  Two model(float32, cpu()), average = model.copy(CopyMode::copy);
  L::Linear other(2, 3);
  EXPECT_THROW(optimizer_hooks::MovingAverage(model, other, 0.5), ValueError);
  EXPECT_THROW(optimizer_hooks::MovingAverage(model, model, 0.5), ValueError);
  EXPECT_THROW(optimizer_hooks::MovingAverage(model, average, 1.5), ValueError);
}

TEST(MovingAverage, CapturedEqualsEagerBitForBit) {
  auto run = [](Device device, Dtype dtype, bool captured) {
    Two model(dtype, device), average = model.copy(CopyMode::copy);
    optimizers::MomentumSGD optimizer(0.1);
    optimizer.use_fp32_update();
    optimizer.setup(model);
    auto mean = std::make_shared<optimizer_hooks::MovingAverage>(model, average, 0.5);
    optimizer.add_hook(mean);
    auto f = [&](const Variable& x) {
      auto loss = [&](const Variable& v) {
        return F::sum(model.a * v * v) + F::sum(model.b * model.b);
      };
      return optimizer.update(loss, x);
    };
    auto step = capture(f, {.replay_lists = true});
    Variable x = constant(xp::array(kGradA, device).astype(dtype));
    for (int i = 0; i < 12; ++i) {
      if (i == 8) mean->decay = 0.75;
      (void)(captured ? step(x) : f(x));
    }
    EXPECT_GE(step.stats().replays, captured ? 5 : 0) << step.stats().last_fallback;
    Values all = average.a.array().to_vector<double>();
    for (double v : average.b.array().to_vector<double>()) all.push_back(v);
    return all;
  };
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float32, float16}) {
      EXPECT_EQ(run(device, dtype, true), run(device, dtype, false)) << device.str();
    }
  }
}

// --- captured ---

struct Net : Chain<Net> {
  L::Linear l1{6, 16}, l2{16, 3};
  void members(Visitor& v) override { v("l1", l1), v("l2", l2); }
  Variable operator()(const Variable& x) const { return l2(F::tanh(l1(x))); }
};

/// The parameters after a few steps, in the course of which numbers are changed.
std::vector<float> train(const Optimizer& optimizer, Device device, bool captured, Dtype dtype,
                         std::int64_t* replays) {
  xp::random::seed(3);
  UsingConfig of(&Config::dtype, dtype);
  auto model = L::Classifier(Net());
  model.compute_accuracy = false;
  model.to(device);
  optimizer.setup(model);
  auto decay = std::make_shared<optimizer_hooks::WeightDecay>(0.01);
  model.predictor.l1.W.update_rule()->add_hook(decay);
  Array x = xp::random::normal(0, 1, {8, 6}, float32, cpu()).astype(dtype).to(device);
  Array t = xp::random::randint(0, 3, {8}, int32, cpu()).to(device);
  auto run = [&](const Variable& batch) { return optimizer.update(model, batch, constant(t)); };
  auto step = capture(run, {.replay_lists = true});
  for (int i = 0; i < 14; ++i) {
    if (i == 6) decay->rate = 0.02;
    if (i == 8) model.predictor.l2.W.update_rule()->set_hyperparam("lr", 0.3);
    if (i == 11) model.predictor.l2.W.update_rule()->set_hyperparam("lr", 0.1);
    (void)(captured ? step(constant(x)) : run(constant(x)));
  }
  if (replays) *replays = static_cast<std::int64_t>(step.stats().replays);
  std::vector<float> all;
  for (const ParameterRef& p : model.params()) {
    for (float v : p.array().astype(float32).to_vector<float>()) all.push_back(v);
  }
  return all;
}

std::vector<std::pair<const char*, std::function<Optimizer()>>> captured_cases() {
  using namespace optimizers;
  using namespace optimizer_hooks;
  return {
      {"clipping",
       [] {
         Optimizer o = MomentumSGD(0.2);
         o.add_hook(GradientClipping(0.3));
         return o;
       }},
      {"decay and noise",
       [] {
         Optimizer o = SMORMS3({.lr = 0.01});
         o.add_hook(optimizer_hooks::Lasso(0.001)).add_hook(GradientNoise(0.01));
         return o;
       }},
      {"LARS",
       [] {
         Optimizer o = SGD(0.1);
         o.add_hook(GradientLARS(0.01, 0.01));
         return o;
       }},
      {"float32 update",
       [] {
         Optimizer o = SGD(0.1);
         o.use_fp32_update();
         return o;
       }},
      {"static loss scale",
       [] {
         Optimizer o = SGD(0.1);
         o.loss_scaling({.scale = 128});
         return o;
       }},
      {"dynamic loss scale",
       [] {
         Optimizer o = SGD(0.1);
         o.use_fp32_update().loss_scaling({.interval = 3});
         o.add_hook(GradientClipping(1));
         return o;
       }},
  };
}

TEST(Hooks, CapturedEqualsEagerBitForBit) {
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float32, float16}) {
      for (const auto& [name, make] : captured_cases()) {
        SCOPED_TRACE(std::string(name) + " " + dtype_name(dtype).data() + " on " + device.str());
        std::int64_t replays = 0;
        std::vector<float> eager = train(make(), device, false, dtype, nullptr);
        std::vector<float> captured = train(make(), device, true, dtype, &replays);
        EXPECT_EQ(captured, eager);
        EXPECT_GE(replays, 4);
      }
    }
  }
}

}  // namespace
}  // namespace rensa

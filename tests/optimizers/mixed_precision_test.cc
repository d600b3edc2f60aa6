// Values of a parameter's own, float32 copies of narrower parameters, and loss scaling.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/device/stream.h"
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
      : a(Initializer(xp::array({1.0, -2.0, 0.5}).astype(dtype))),
        b(Initializer(xp::array({4.0, 0.25}).astype(dtype))) {
    to(device);
  }
  void members(Visitor& v) override { v("a", a), v("b", b); }
  void set_gradients(double value) {
    a.set_grad(xp::full_like(a.array(), value));
    b.set_grad(xp::full_like(b.array(), value));
  }
};

// --- values of a parameter's own ---

TEST(Hyperparameters, OfAParameterWinOverTheOptimizers) {
  for (Device device : testing::test_devices()) {
    Two model(float64, device);
    optimizers::SGD optimizer(1.0);
    optimizer.setup(model);
    UpdateRule& rule = *model.b.update_rule();
    rule.set_hyperparam("lr", 0.5);
    EXPECT_EQ(rule.hyperparam("lr"), 0.5);
    EXPECT_EQ(model.a.update_rule()->hyperparam("lr"), 1);
    optimizer.lr() = 2;
    model.set_gradients(1);
    optimizer.update();
    EXPECT_EQ(model.a.array().to_vector<double>(), (Values{-1, -4, -1.5}));
    EXPECT_EQ(model.b.array().to_vector<double>(), (Values{3.5, -0.25}));
    rule.reset_hyperparam("lr");
    EXPECT_EQ(rule.hyperparam("lr"), 2);
    optimizer.update();
    EXPECT_EQ(model.b.array().to_vector<double>(), (Values{1.5, -2.25}));
    std::string text = testing::thrown<ValueError>([&] { rule.set_hyperparam("alpha", 1); });
    EXPECT_NE(text.find("SGD: no hyperparameter \"alpha\"; it has [lr]"), std::string::npos)
        << text;
  }
}

struct Many : Chain<Many> {
  std::vector<Parameter> all;
  explicit Many(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) all.emplace_back(Initializer(1), Shape{i + 1});
    for (std::int64_t i = 0; i < count; ++i) names.push_back("p" + std::to_string(i));
  }
  void members(Visitor& v) override {
    for (std::size_t i = 0; i < all.size(); ++i) v(names[i].c_str(), all[i]);
  }
  std::vector<std::string> names;
};

TEST(Hyperparameters, OfManyParameters) {  // more than go into one launch
  for (Device device : testing::test_devices()) {
    Many model(150);
    model.to(device);
    optimizers::MomentumSGD optimizer(1.0, 0);
    optimizer.setup(model);
    for (std::size_t i = 0; i < 150; ++i) {
      if (i % 3 == 1) model.all[i].update_rule()->set_hyperparam("lr", 2 + static_cast<double>(i));
      model.all[i].set_grad(xp::ones_like(model.all[i].array()));
    }
    optimizer.update();
    for (std::size_t i = 0; i < 150; ++i) {
      float lr = i % 3 == 1 ? 2 + static_cast<float>(i) : 1;
      EXPECT_EQ(model.all[i].array().to_vector<float>(), std::vector<float>(i + 1, 1 - lr)) << i;
    }
  }
}

TEST(Hyperparameters, AreInFiles) {
  testing::TemporaryFolder folder;
  std::string path = folder / "optimizer.npz";
  Two model(float32, cpu()), other(float32, cpu());
  optimizers::SMORMS3 optimizer(0.25), second(0.5);
  optimizer.setup(model);
  second.setup(other);
  model.b.update_rule()->set_hyperparam("eps", 0.125);
  model.set_gradients(0.5);
  optimizer.update();
  serializers::save_npz(path, optimizer);
  serializers::load_npz(path, second);
  EXPECT_EQ(second.lr(), 0.25);
  EXPECT_EQ(other.b.update_rule()->hyperparam("eps"), 0.125);
  EXPECT_EQ(other.a.update_rule()->hyperparam("eps"), 1e-16);
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(other.a.update_rule()->states[k].to_vector<float>(),
              model.a.update_rule()->states[k].to_vector<float>());
  }
}

// --- float32 copies ---

TEST(Float32Update, KeepsWhatTheParameterCannotHold) {
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float16, bfloat16}) {
      Two model(dtype, device), narrow(dtype, device);
      optimizers::MomentumSGD optimizer(1.0, 0), without(1.0, 0);
      optimizer.use_fp32_update();
      optimizer.setup(model);
      without.setup(narrow);
      for (int i = 0; i < 64; ++i) {  // each step is less than a half unit in the last place of 4
        model.set_gradients(1.0 / 4096);
        narrow.set_gradients(1.0 / 4096);
        optimizer.update();
        without.update();
      }
      EXPECT_EQ(model.b.update_rule()->fp32_param.to_vector<double>(),
                (Values{4 - 64.0 / 4096, 0.25 - 64.0 / 4096}));
      Array rounded = model.b.update_rule()->fp32_param.astype(dtype);
      EXPECT_EQ(model.b.array().to_vector<double>(), rounded.to_vector<double>());
      EXPECT_EQ(narrow.b.array().to_vector<double>()[0], 4);
      EXPECT_EQ(model.b.update_rule()->states[0].dtype(), float32);
    }
  }
}

TEST(Float32Update, FollowsWhatOthersWriteToTheParameter) {
  for (Device device : testing::test_devices()) {
    Two model(float16, device);
    optimizers::SGD optimizer(1.0);
    optimizer.setup(model).use_fp32_update();
    model.set_gradients(1.0 / 4096);
    optimizer.update();
    model.a.array()[{0}] = 8;
    optimizer.update();
    Values copy = model.a.update_rule()->fp32_param.to_vector<double>();
    EXPECT_EQ(copy, (Values{8 - 1.0 / 4096, -2 - 2.0 / 4096, 0.5 - 2.0 / 4096}));
  }
}

TEST(Float32Update, FollowsAParameterToOtherMemory) {
  for (Device device : testing::test_devices()) {
    Two model(float16, device);
    optimizers::SGD optimizer(1.0);
    optimizer.setup(model).use_fp32_update();
    model.set_gradients(0);
    optimizer.update();
    Array before = model.a.array();
    Array other = xp::array({8.0, 1.0, 2.0}, device).astype(float16);
    // Written to as often as the one before.
    for (auto [less, more] : {std::pair(other, before), std::pair(before, other)}) {
      while (less.storage()->version() < more.storage()->version()) less.storage()->count_write();
    }
    model.a.body()->array = other;
    optimizer.update();
    EXPECT_EQ(model.a.array().to_vector<double>(), (Values{8, 1, 2}));
  }
}

// --- loss scaling ---

struct Squares : Chain<Squares> {
  Parameter w;
  Squares(Dtype dtype, Device device) : w(Initializer(xp::array({1.0, -2.0}).astype(dtype))) {
    to(device);
  }
  void members(Visitor& v) override { v("w", w); }
  Variable operator()(const Variable& x) const { return F::sum(w * x); }
};

TEST(LossScale, OfAFixedSizeSavesSmallGradients) {
  for (Device device : testing::test_devices()) {
    Squares model(float16, device);
    Variable x = constant(xp::full({2}, 1.0 / 1024, float16, device));
    Variable tiny = constant(xp::full({}, std::ldexp(1.0, -16), float16, device));
    auto loss = [&](const Variable& v) { return model(v) * tiny; };
    optimizers::SGD optimizer(1048576.0);
    optimizer.use_fp32_update();
    optimizer.setup(model);
    (void)optimizer.update(loss, x);  // 2^-26 is 0 in float16
    EXPECT_EQ(model.w.array().to_vector<double>(), (Values{1, -2}));
    optimizer.loss_scaling({.scale = 1024});
    EXPECT_EQ(optimizer.loss_scale().item<double>(), 1024);
    (void)optimizer.update(loss, x);
    EXPECT_EQ(model.w.array().to_vector<double>(), (Values{1 - 1.0 / 64, -2 - 1.0 / 64}));
  }
  EXPECT_THROW(optimizers::SGD().loss_scaling({.scale = 0}), ValueError);
  EXPECT_THROW(optimizers::SGD().loss_scaling({.interval = 0}), ValueError);
}

TEST(LossScale, StepsThatOnlyGoBackwardFollowIt) {
  for (Device device : testing::test_devices()) {
    Squares model(float32, device);
    optimizers::SGD optimizer(1.0);
    optimizer.setup(model);
    optimizer.loss_scaling({.scale = 2});
    auto backward = [&](const Variable& x) {
      model.cleargrads();
      Variable loss = model(x);
      optimizer.backward(loss);
      return loss;
    };
    auto step = capture(backward, {.replay_lists = true});
    Variable one = constant(xp::ones({2}, float32, device));
    for (int i = 0; i < 6; ++i) (void)step(one);
    EXPECT_GE(step.stats().replays, 1) << step.stats().last_fallback;
    EXPECT_EQ(model.w.grad().to_vector<double>(), (Values{2, 2}));
    optimizer.loss_scaling({.scale = 8});
    (void)step(one);
    EXPECT_EQ(model.w.grad().to_vector<double>(), (Values{8, 8}));
  }
}

TEST(LossScale, OfADynamicSizeLeavesOutWhatOverflows) {
  for (Device device : testing::test_devices()) {
    Squares model(float32, device);
    optimizers::MomentumSGD optimizer(1.0, 0);
    optimizer.loss_scaling({.interval = 2});
    optimizer.setup(model);
    Variable one = constant(xp::ones({2}, float32, device));
    Variable bad = constant(xp::full({2}, std::numeric_limits<float>::infinity(), float32, device));
    (void)optimizer.update(model, one);
    std::int64_t waits = cuda::sync_count();
    (void)optimizer.update(model, one);
    (void)optimizer.update(model, bad);
    (void)optimizer.update(model, one);
    EXPECT_EQ(cuda::sync_count(), waits);
    // 1, doubled twice, halved, then raised by sqrt(2).
    EXPECT_NEAR(optimizer.loss_scale().item<double>(), 2 * std::sqrt(2.0), 1e-12);
    EXPECT_EQ(model.w.array().to_vector<double>(), (Values{1 - 3, -2 - 3}));
    EXPECT_EQ(model.w.update_rule()->states[0].to_vector<double>(), (Values{-1, -1}));
    for (int i = 0; i < 2; ++i) (void)optimizer.update(model, bad);
    EXPECT_EQ(optimizer.loss_scale().item<double>(), 1);  // never less
    EXPECT_EQ(model.w.array().to_vector<double>(), (Values{-2, -5}));
  }
}

TEST(LossScale, HooksSeeTheGradientsWithoutIt) {
  using Configure = std::function<void(const Optimizer&)>;
  const std::vector<Configure> scales = {
      [](const Optimizer& o) { o.set_loss_scale(1024); },
      [](const Optimizer& o) { o.loss_scaling({.interval = 4}); },
  };
  const std::vector<Configure> hooks = {
      [](const Optimizer& o) { o.add_hook(optimizer_hooks::GradientClipping(0.5)); },
      [](const Optimizer& o) { o.add_hook(optimizer_hooks::GradientHardClipping(-0.25, 0.25)); },
      [](const Optimizer& o) { o.add_hook(optimizer_hooks::WeightDecay(0.125)); },
      [](const Optimizer& o) {
        o.target().params()[0].update_rule()->add_hook(
            std::make_shared<optimizer_hooks::WeightDecay>(0.5));
      },
  };
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float32, float16}) {
      for (const Configure& add_hook : hooks) {
        auto train = [&](const Configure& scale) {
          Squares model(dtype, device);
          optimizers::MomentumSGD optimizer(0.25, 0.5);
          optimizer.use_fp32_update();
          optimizer.setup(model);
          add_hook(optimizer);
          scale(optimizer);
          for (int i = 0; i < 6; ++i) {
            (void)optimizer.update(model, constant(xp::full({2}, 0.5 + i, dtype, device)));
          }
          return model.w.array().to_vector<double>();
        };
        Values want = train([](const Optimizer&) {});
        for (const Configure& scale : scales) EXPECT_EQ(train(scale), want);
      }
    }
  }
}

TEST(LossScale, GradientsAreAccumulatedUnderIt) {
  for (Device device : testing::test_devices()) {
    for (bool dynamic : {false, true}) {
      Squares model(float16, device), plain(float16, device);
      optimizers::SGD optimizer(0.5), other(0.5);
      optimizer.use_fp32_update().setup(model), other.use_fp32_update().setup(plain);
      dynamic ? optimizer.loss_scaling({.interval = 2}) : optimizer.set_loss_scale(256);
      for (int i = 0; i < 5; ++i) {
        model.cleargrads(), plain.cleargrads();
        for (int part = 0; part < 4; ++part) {
          Variable x = constant(xp::full({2}, 0.25 * (part + i), float16, device));
          optimizer.backward(model(x), 0.25);
          other.backward(plain(x), 0.25);
        }
        optimizer.update(), other.update();
      }
      EXPECT_EQ(model.w.array().to_vector<double>(), plain.w.array().to_vector<double>());
    }
  }
}

TEST(LossScale, ADynamicOneGoesOnFromAFile) {
  testing::TemporaryFolder folder;
  for (Device device : testing::test_devices()) {
    auto step = [&](const Optimizer& optimizer, Squares& model, int i) {
      bool bad = i == 3 || i == 7;
      double x = bad ? std::numeric_limits<double>::infinity() : 0.5;
      (void)optimizer.update(model, constant(xp::full({2}, x, float32, device)));
      return optimizer.loss_scale().item<double>();
    };
    auto make = [&](const Optimizer& optimizer, Squares& model) {
      optimizer.setup(model);
      optimizer.loss_scaling({.interval = 2});
    };
    Squares whole(float32, device), part(float32, device), rest(float32, device);
    optimizers::MomentumSGD a(0.25), b(0.25), c(0.25);
    make(a, whole), make(b, part), make(c, rest);
    Values want, got;
    for (int i = 0; i < 10; ++i) want.push_back(step(a, whole, i));
    for (int i = 0; i < 5; ++i) got.push_back(step(b, part, i));
    serializers::save_npz(folder / "optimizer.npz", b);
    serializers::save_npz(folder / "model.npz", part);
    serializers::load_npz(folder / "optimizer.npz", c);
    serializers::load_npz(folder / "model.npz", rest);
    for (int i = 5; i < 10; ++i) got.push_back(step(c, rest, i));
    EXPECT_EQ(got, want);
    EXPECT_EQ(rest.w.array().to_vector<double>(), whole.w.array().to_vector<double>());
    EXPECT_EQ(want[2], 8);
    EXPECT_EQ(want[3], 4);
  }
}

TEST(LossScale, ReplaysLeaveOutWhatOverflowsWithoutAWait) {
  for (Device device : testing::test_devices()) {
    auto run = [&](bool captured) {
      Squares model(float16, device);
      optimizers::MomentumSGD optimizer(0.25);
      optimizer.use_fp32_update().setup(model);
      optimizer.loss_scaling({.interval = 2});
      auto step = capture(
          [&](const Variable& x) {
            model.cleargrads();
            Variable loss = model(x);
            optimizer.backward(loss);
            optimizer.update();
            return loss;
          },
          {.replay_lists = true});
      std::int64_t waits = cuda::sync_count();
      std::vector<Array> seen;
      for (int i = 0; i < 30; ++i) {
        // The scale grows until the gradients are no numbers of float16, and goes on from there.
        Variable x = constant(xp::full({2}, 1.5, float16, device));
        if (captured) {
          (void)step(x);
        } else {
          model.cleargrads();
          optimizer.backward(model(x));
          optimizer.update();
        }
        seen.push_back(optimizer.loss_scale().copy());
        seen.push_back(model.w.array().copy());
      }
      EXPECT_EQ(cuda::sync_count(), waits);
      if (captured) {
        EXPECT_GT(step.stats().replays, 20) << step.stats().last_fallback;
      }
      Values all;
      for (const Array& a : seen) {
        for (double value : a.to_vector<double>()) all.push_back(value);
      }
      return all;
    };
    Values want = run(false);
    EXPECT_EQ(run(true), want);
    EXPECT_EQ(*std::max_element(want.begin(), want.end()), 65504);
  }
}

}  // namespace
}  // namespace rensa

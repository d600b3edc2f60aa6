// Values of a parameter's own, float32 copies of narrower parameters, and loss scaling.
#include <gtest/gtest.h>

#include <cmath>
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

}  // namespace
}  // namespace rensa

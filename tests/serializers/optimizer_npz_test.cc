// What an optimizer's file holds, and what one may lack.
#include <gmock/gmock.h>

#include "rensa/core/error.h"
#include "rensa/functions/functions.h"
#include "rensa/links/links.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/serializers/npz.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using ::testing::HasSubstr;
using Values = std::vector<double>;

struct Two : Chain<Two> {
  Parameter a, b;
  Two()
      : a(Initializer(xp::array({1.0, -2.0, 0.5}, cpu()).astype(float16))),
        b(Initializer(xp::array({4.0, 0.25}, cpu()).astype(float16))) {}
  void members(Visitor& v) override { v("a", a), v("b", b); }
};

/// A model with an optimizer that keeps all that one can keep.
struct Trained {
  Two model;
  optimizers::Adam optimizer{0.125};
  Trained() { optimizer.setup(model).use_fp32_update().loss_scaling(); }
  void update() const {
    for (const ParameterRef& p : model.params()) p.set_grad(xp::full_like(p.array(), 0.5));
    optimizer.update();
  }
  Values values() const {
    Values all;
    for (const ParameterRef& p : model.params()) {
      for (double v : p.array().to_vector<double>()) all.push_back(v);
    }
    return all;
  }
};

class OptimizerNpzTest : public ::testing::Test {
 protected:
  std::string path_of(const std::string& name) const { return folder_ / name; }
  /// Of `source`, model and optimizer.
  void copy(const Trained& source, Trained& target) const {
    serializers::save_npz(path_of("model.npz"), source.model);
    serializers::save_npz(path_of("optimizer.npz"), source.optimizer);
    serializers::load_npz(path_of("model.npz"), target.model);
    serializers::load_npz(path_of("optimizer.npz"), target.optimizer);
  }
  testing::TemporaryFolder folder_;
};

TEST_F(OptimizerNpzTest, AParameterThatWasNotUpdatedHasNoStates) {
  for (int updates : {0, 2}) {  // of the one that the file is loaded into
    Trained source, target;
    source.model.b.set_update_enabled(false);
    for (int i = 0; i < 3; ++i) source.update();
    for (int i = 0; i < updates; ++i) target.update();
    copy(source, target);
    UpdateRule &a = *target.model.a.update_rule(), &b = *target.model.b.update_rule();
    EXPECT_EQ(a.t, 3);
    EXPECT_EQ(a.states[0].to_vector<double>(),
              source.model.a.update_rule()->states[0].to_vector<double>());
    EXPECT_EQ(a.fp32_param.to_vector<double>(),
              source.model.a.update_rule()->fp32_param.to_vector<double>());
    EXPECT_EQ(b.t, 0);
    EXPECT_TRUE(b.states.empty());
    EXPECT_FALSE(b.fp32_param.defined());
    EXPECT_EQ(target.optimizer.loss_scale().item<double>(), 8);
    source.model.b.set_update_enabled(true);
    target.model.b.set_update_enabled(true);
    source.update();
    target.update();
    EXPECT_EQ(target.values(), source.values());
  }
}

TEST_F(OptimizerNpzTest, BeforeTheFirstUpdate) {
  for (int updates : {0, 2}) {
    Trained source, target;
    for (int i = 0; i < updates; ++i) target.update();
    copy(source, target);
    EXPECT_EQ(target.optimizer.t(), 0);
    EXPECT_TRUE(target.model.a.update_rule()->states.empty());
    EXPECT_EQ(target.optimizer.loss_scale().item<double>(), 1);
    source.update();
    target.update();
    EXPECT_EQ(target.values(), source.values());
    EXPECT_EQ(target.optimizer.loss_scale().item<double>(), 2);
  }
}

TEST_F(OptimizerNpzTest, ALossScaleThatWasNotUsedYet) {
  Trained source, target;
  source.update();
  target.update();
  source.optimizer.loss_scaling();
  copy(source, target);
  EXPECT_EQ(target.optimizer.t(), 1);
  EXPECT_EQ(target.optimizer.loss_scale().item<double>(), 1);
}

TEST_F(OptimizerNpzTest, AFileThatLacksStatesOfUpdatesIsRefused) {
  Two model, other;
  optimizers::SGD source;
  source.setup(model);
  model.a.set_grad(xp::ones_like(model.a.array()));
  source.update();
  serializers::save_npz(path_of("a.npz"), source);
  optimizers::MomentumSGD target;
  target.setup(other).use_fp32_update().loss_scaling();
  std::string text = testing::message_of<SerializationError>(
      [&] { serializers::load_npz(path_of("a.npz"), target); });
  EXPECT_THAT(text,
              HasSubstr("it lacks [a/v, a/fp32_param, loss_scale, loss_scale_overflowed] and"));
  EXPECT_EQ(other.a.update_rule()->t, 0);
}

TEST_F(OptimizerNpzTest, ParametersOfAnotherOptimizerAreRefused) {
  Two model;
  optimizers::SGD first;
  optimizers::Adam second;
  first.setup(model);
  serializers::save_npz(path_of("a.npz"), first);
  second.setup(model);
  model.a.set_grad(xp::ones_like(model.a.array()));
  second.update();
  EXPECT_THROW(serializers::save_npz(path_of("b.npz"), first), ValueError);
  EXPECT_THROW(serializers::load_npz(path_of("a.npz"), first), ValueError);
  EXPECT_EQ(model.a.update_rule()->t, 1);
}

/// An algorithm and a hook that count on their own.
struct Slower : OptimizerAlgorithm {
  std::int64_t k = 0;
  const char* name() const override { return "Slower"; }
  void members(Visitor& v) override { v("k", k); }
  void update(const UpdateCall& call) override {
    ++k;
    for (const UpdatedParameter& p : call.parameters) p.array -= p.grad / static_cast<double>(k);
  }
};
struct Calls : OptimizerHook {
  std::int64_t calls = 0;
  const char* name() const override { return "Calls"; }
  void members(Visitor& v) override { v("calls", calls); }
  void operator()(const UpdateCall&) override { ++calls; }
};

TEST_F(OptimizerNpzTest, AlgorithmsAndHooksShowTheirs) {
  Two model, other;
  auto slower = std::make_shared<Slower>(), read = std::make_shared<Slower>();
  auto calls = std::make_shared<Calls>(), calls_read = std::make_shared<Calls>();
  Optimizer source(slower), target(read);
  source.setup(model).add_hook(calls);
  target.setup(other).add_hook(calls_read);
  for (int i = 0; i < 3; ++i) {
    model.a.set_grad(xp::ones_like(model.a.array()));
    source.update();
  }
  serializers::save_npz(path_of("a.npz"), source);
  serializers::load_npz(path_of("a.npz"), target);
  EXPECT_EQ(read->k, 3);
  EXPECT_EQ(calls_read->calls, 3);
}

/// A function as a hook, which counts its calls.
struct CountingHook {
  Counter calls;
  void operator()(const UpdateCall&) { ++calls; }
  void members(Visitor& v) { v("calls", calls); }
};

TEST_F(OptimizerNpzTest, AFunctionAsAHookShowsItsMembers) {
  auto counted = [&](const optimizers::SGD& optimizer) {
    std::int64_t calls = 0;
    serializers::save_npz(path_of("a.npz"), optimizer);
    serializers::load_npz(path_of("a.npz"), [&](Visitor& v) { v("calls", calls); },
                          {.path = "hook/count"});
    return calls;
  };
  L::Linear model(2, 1);
  optimizers::SGD optimizer(0.1), other(0.1);
  optimizer.setup(model);
  optimizer.add_hook(optimizer_hooks::Function("count", CountingHook()));
  for (int i = 0; i < 3; ++i) {
    optimizer.update([&] { return F::mean(model(xp::ones({1, 2}))); });
  }
  EXPECT_EQ(counted(optimizer), 3);
  serializers::save_npz(path_of("a.npz"), optimizer);
  L::Linear twin(2, 1);
  other.setup(twin);
  other.add_hook(optimizer_hooks::Function("count", CountingHook()));
  serializers::load_npz(path_of("a.npz"), other);
  EXPECT_EQ(counted(other), 3);
}

TEST_F(OptimizerNpzTest, HooksOfSingleParametersShowTheirs) {
  Two model, other;
  optimizers::SGD source, target;
  source.setup(model);
  target.setup(other);
  auto add = [](Two& two) {
    auto of_a = std::make_shared<Calls>(), of_both = std::make_shared<Calls>();
    two.a.update_rule()->add_hook(of_a);
    struct Both : Calls {
      const char* name() const override { return "Both"; }
    };
    of_both = std::make_shared<Both>();
    two.a.update_rule()->add_hook(of_both);
    two.b.update_rule()->add_hook(of_both);
    return std::pair(of_a, of_both);
  };
  auto [calls, both] = add(model);
  auto [calls_read, both_read] = add(other);
  for (int i = 0; i < 3; ++i) {
    if (i < 2) model.a.set_grad(xp::ones_like(model.a.array()));
    else model.a.cleargrad();
    model.b.set_grad(xp::ones_like(model.b.array()));
    source.update();
  }
  serializers::save_npz(path_of("a.npz"), source);
  serializers::load_npz(path_of("a.npz"), target);
  EXPECT_EQ(calls_read->calls, 2);
  EXPECT_EQ(both_read->calls, 3);
}

/// An optimizer with every hook of the library's that has numbers, each set to `value`.
struct Hooked {
  Two model;
  optimizers::SGD optimizer;
  std::vector<double*> numbers;

  template <class Hook> void add(Hook hook, std::vector<double Hook::*> fields, bool to_one) {
    auto held = std::make_shared<Hook>(std::move(hook));
    for (double Hook::*field : fields) numbers.push_back(&(*held.*field));
    if (to_one) model.b.update_rule()->add_hook(held);
    else optimizer.add_hook(held);
  }
  Hooked() {
    using namespace optimizer_hooks;
    optimizer.setup(model);
    for (bool to_one : {false, true}) {
      add(WeightDecay(0), {&WeightDecay::rate}, to_one);
      add(Lasso(0), {&Lasso::rate}, to_one);
      add(GradientClipping(0), {&GradientClipping::threshold}, to_one);
      add(GradientHardClipping(0, 0),
          {&GradientHardClipping::lower_bound, &GradientHardClipping::upper_bound}, to_one);
      add(GradientNoise(0), {&GradientNoise::eta}, to_one);
      add(GradientLARS(0),
          {&GradientLARS::threshold, &GradientLARS::weight_decay, &GradientLARS::eps}, to_one);
    }
  }
};

TEST_F(OptimizerNpzTest, NumbersOfHooksThatWereChangedInTheRun) {
  Hooked source, target;
  for (std::size_t i = 0; i < source.numbers.size(); ++i) {
    *source.numbers[i] = 1 + static_cast<double>(i);
  }
  serializers::save_npz(path_of("a.npz"), source.optimizer);
  serializers::load_npz(path_of("a.npz"), target.optimizer);
  for (std::size_t i = 0; i < source.numbers.size(); ++i) {
    EXPECT_EQ(*target.numbers[i], 1 + static_cast<double>(i));
  }
}

TEST_F(OptimizerNpzTest, WhatIsUpdated) {
  for (bool frozen : {false, true}) {
    Two model, other;
    optimizers::SGD source, target;
    source.setup(model);
    target.setup(other);
    model.b.set_update_enabled(!frozen);
    other.b.set_update_enabled(frozen);
    serializers::save_npz(path_of("a.npz"), source);
    serializers::load_npz(path_of("a.npz"), target);
    EXPECT_TRUE(other.a.update_enabled());
    EXPECT_EQ(other.b.update_enabled(), !frozen);
  }
}

TEST_F(OptimizerNpzTest, LossScales) {
  Two model, other;
  optimizers::SGD source, target;
  source.setup(model).loss_scaling({.scale = 256});
  target.setup(other).loss_scaling({.scale = 2});
  serializers::save_npz(path_of("fixed.npz"), source);
  serializers::load_npz(path_of("fixed.npz"), target);
  EXPECT_EQ(target.loss_scale().item<double>(), 256);
  source.loss_scaling({.interval = 8});
  target.loss_scaling({.interval = 4});
  serializers::save_npz(path_of("dynamic.npz"), source);
  serializers::load_npz(path_of("dynamic.npz"), target);
  EXPECT_EQ(target.state()->dynamic->interval, 8);
}

TEST_F(OptimizerNpzTest, PartsThatCameAfterSetupAreInTheFile) {
  auto model = L::Classifier(L::Linear(2, 2)), other = L::Classifier(L::Linear(2, 2));
  optimizers::Adam optimizer, second;
  optimizer.setup(model);
  second.setup(other);
  model.predictor = L::Linear(2, 2);
  serializers::save_npz(path_of("a.npz"), optimizer);
  EXPECT_NO_THROW(serializers::load_npz(path_of("a.npz"), second));
}

}  // namespace
}  // namespace rensa

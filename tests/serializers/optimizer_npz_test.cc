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

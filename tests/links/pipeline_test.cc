// A model in stages on ranks, against the whole one on one.
#include "rensa/links/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <mutex>

#include "rensa/array/linalg.h"
#include "rensa/array/manipulation.h"
#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/functions/activation.h"
#include "rensa/functions/loss.h"
#include "rensa/links/linear.h"
#include "rensa/optimizers/hooks.h"
#include "rensa/optimizers/multi_node_optimizer.h"
#include "rensa/optimizers/sgd.h"
#include "tests/ranks.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using ::testing::HasSubstr;

struct Layer : Chain<Layer> {
  L::Linear l;
  bool relu = true;
  Layer(std::int64_t in, std::int64_t out, bool relu) : l(in, out), relu(relu) {}
  void members(Visitor& v) override { v("l", l); }
  Variable operator()(const Variable& x) const { return relu ? F::relu(l(x)) : l(x); }
};

/// Three stages.
struct Net : Chain<Net> {
  Layer a{5, 7, true}, b{7, 6, true}, c{6, 4, false};
  void members(Visitor& v) override { v("a", a), v("b", b), v("c", c); }
  Variable operator()(const Variable& x) const { return c(b(a(x))); }
  const Layer& stage(int k) const { return k == 0 ? a : k == 1 ? b : c; }
};

Array weights(const Layer& layer) {
  return xp::concatenate({layer.l.W.array().ravel(), layer.l.b.array()});
}

TEST(Pipeline, StepsAreThoseOfTheWholeModel) {
  Array x = xp::random::uniform(-1, 1, {12, 5}), t = xp::arange(12, int64) % 4;
  Net start, alone = start;
  optimizer_hooks::GradientClipping clipping(0.2);
  Optimizer optimizer = optimizers::MomentumSGD(0.5);
  optimizer.setup(alone);
  optimizer.add_hook(clipping);
  std::vector<float> losses;
  for (int step = 0; step < 5; ++step) {
    Variable loss = F::softmax_cross_entropy(alone(constant(x)), constant(t));
    losses.push_back(loss.array().item<float>());
    alone.cleargrads();
    loss.backward();
    optimizer.update();
  }
  for (int micro_batches : {1, 2, 4}) {
    testing::run_ranks(3, [&](const Communicator& comm) {
      const Layer& stage = start.stage(comm.rank());
      L::Pipeline model(comm, Layer(stage), micro_batches);
      EXPECT_EQ(model.is_first(), comm.rank() == 0);
      EXPECT_EQ(model.is_last(), comm.rank() == 2);
      Optimizer own = create_pipeline_optimizer(optimizers::MomentumSGD(0.5), comm);
      own.setup(model);
      own.add_hook(clipping);
      for (std::size_t step = 0; step < 5; ++step) {
        Variable y = model(model.is_first() ? constant(x) : Variable());
        Variable loss = model.is_last() ? F::softmax_cross_entropy(y, constant(t)) : y;
        model.cleargrads();
        loss.backward();
        own.update();
        if (model.is_last()) {
          EXPECT_EQ(y.shape(), (Shape{12, 4}));
          EXPECT_NEAR(loss.array().item<float>(), losses[step], 1e-5);
        }
      }
      Array got = weights(model.stage.as<Layer>()), want = weights(alone.stage(comm.rank()));
      EXPECT_TRUE(xp::allclose(got, want, 1e-4, 1e-5)) << comm.rank() << " " << micro_batches;
    });
  }
}

// Of rank 0 alone, while a parameter's own hook finds what is that parameter's.
TEST(Pipeline, UpdatesAreLeftOutByAllStages) {
  Array x = xp::random::uniform(-1, 1, {12, 5}), t = xp::arange(12, int64) % 4;
  Net start;
  testing::run_ranks(3, [&](const Communicator& comm) {
    L::Pipeline model(comm, Layer(start.stage(comm.rank())));
    Optimizer own = create_pipeline_optimizer(optimizers::SGD(1), comm);
    own.setup(model);
    own.loss_scaling();
    const L::Linear& layer = model.stage.as<Layer>().l;
    if (comm.rank() == 1) {
      layer.W.update_rule()->add_hook(std::make_shared<optimizer_hooks::GradientClipping>(1e-3));
    }
    for (bool overflows : {true, false}) {
      Variable y = model(model.is_first() ? constant(x) : Variable());
      Variable loss = model.is_last() ? F::softmax_cross_entropy(y, constant(t)) : y;
      model.cleargrads();
      loss.backward({.loss_scale = own.loss_scale().item<double>()});
      if (overflows && comm.rank() == 0) layer.W.grad().fill(HUGE_VAL);
      Array before = layer.W.array().copy();
      own.update();
      EXPECT_EQ(xp::array_equal(layer.W.array(), before), overflows) << comm.rank();
      if (comm.rank() == 1 && !overflows) {
        EXPECT_NEAR(xp::linalg::norm(layer.W.array() - before).item<float>(), 1e-3, 1e-5);
      }
    }
    EXPECT_THROW(create_pipeline_optimizer(own, comm), ValueError);
  });
}

TEST(Pipeline, OfOneRankIsTheStage) {
  testing::run_ranks(1, [](const Communicator& comm) {
    Layer layer(5, 4, false);
    L::Pipeline model(comm, Layer(layer), 3);
    Variable x = constant(xp::random::uniform(-1, 1, {6, 5}));
    EXPECT_TRUE(xp::allclose(model(x).array(), layer(x).array(), 1e-6, 1e-6));
  });
}

TEST(Pipeline, WhatDoesNotFit) {
  testing::run_ranks(2, [](const Communicator& comm) {
    std::string text =
        testing::thrown<ValueError>([&] { L::Pipeline(comm, Layer(5, 5, true), comm.rank() + 1); });
    EXPECT_THAT(text, HasSubstr("1 micro-batches"));
    EXPECT_THAT(text, HasSubstr("2 micro-batches"));
    EXPECT_THROW(L::Pipeline(comm, Layer(5, 5, true), 0), ValueError);
    L::Pipeline model(comm, Layer(5, 5, true), 4);
    Variable x = constant(xp::ones({6, 5}));
    if (comm.rank() == 0) {
      EXPECT_THAT(testing::thrown<ShapeError>([&] { (void)model(x); }), HasSubstr("(6, 5)"));
      EXPECT_THROW((void)model(Variable()), ValueError);
    } else {
      EXPECT_THROW((void)model(x), ValueError);
    }
  });
}

}  // namespace
}  // namespace rensa

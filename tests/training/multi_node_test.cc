// Ranks that train one model together, against one that trains it alone.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <numeric>

#include "rensa/array/communicator.h"
#include "rensa/array/manipulation.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/data/data.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/capture.h"
#include "rensa/links/links.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/serializers/npz.h"
#include "rensa/training/training.h"
#include "tests/ranks.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"
#include "tests/training/models.h"

namespace rensa {
namespace {

using ::testing::HasSubstr;

/// Of 6 inputs and 3 classes; its sizes are inferred.
struct Net : Chain<Net> {
  L::Linear l1{std::int64_t{8}}, l2{std::int64_t{3}};
  void members(Visitor& v) override { v("l1", l1), v("l2", l2); }
  Variable operator()(const Variable& x, const Variable& t) const {
    return F::softmax_cross_entropy(l2(F::relu(l1(x))), t);
  }
};

struct Data {
  Array x = (xp::arange(48 * 6, float32) * 37.f % 101.f * 0.02f - 1.f).reshape({48, 6});
  Array t = xp::arange(48, int64) % 3;
  Array part_of(const Array& a, const Communicator& c) const {
    std::int64_t part = 48 / c.size();
    return a[Slice(part * c.rank(), part * (c.rank() + 1))];
  }
};

/// All of a model's parameters in one array.
Array numbers_of(const Link& model) {
  std::vector<Array> flat;
  for (const ParameterRef& p : model.params()) flat.push_back(p.array().ravel());
  return xp::concatenate(flat);
}

TEST(MultiNode, StepsAreThoseOfTheWholeBatchOnOne) {
  Data data;
  Net start;
  start(constant(data.x), constant(data.t));  // makes the parameters
  for (auto make : std::initializer_list<Optimizer (*)()>{
           [] { return Optimizer(optimizers::SGD(0.3)); },
           [] { return Optimizer(optimizers::Adam()); },
           [] { return Optimizer(optimizers::MomentumSGD(0.1)); }}) {
    Net alone = start;
    Optimizer optimizer = make();
    optimizer.setup(alone);
    for (int step = 0; step < 10; ++step) {
      optimizer.update(alone, constant(data.x), constant(data.t));
    }
    Array want = numbers_of(alone);
    for (int size : {1, 2, 4}) {
      std::mutex mutex;
      std::vector<Array> got(static_cast<std::size_t>(size));
      testing::run_ranks(size, [&](const Communicator& c) {
        Net model = start;
        if (c.rank() != 0) model.l1.W.array() *= 2.f;  // rank 0's count
        Optimizer own = make();
        own.setup(model);
        create_multi_node_optimizer(own, c);
        for (int step = 0; step < 10; ++step) {
          own.update(model, constant(data.part_of(data.x, c)), constant(data.part_of(data.t, c)));
        }
        std::lock_guard lock(mutex);
        got[static_cast<std::size_t>(c.rank())] = numbers_of(model);
      });
      for (const Array& a : got) {
        EXPECT_TRUE(xp::array_equal(a, got[0]));
        EXPECT_TRUE(xp::allclose(a, want, 1e-5, 1e-6)) << size;
      }
    }
  }
}

TEST(MultiNode, ParametersThatWaitForTheirShapes) {
  Data data;
  std::vector<Array> got(3), first(3);
  Array start, gradient;
  testing::run_ranks(3, [&](const Communicator& c) {
    auto rank = static_cast<std::size_t>(c.rank());
    Net model;
    Optimizer own = optimizers::SGD(0.5);
    own.setup(model);
    create_multi_node_optimizer(own, c);
    for (int step = 0; step < 4; ++step) {
      Variable loss = model(constant(data.part_of(data.x, c)), constant(data.part_of(data.t, c)));
      if (step == 0 && c.rank() == 0) start = numbers_of(model);
      model.cleargrads();
      loss.backward();
      if (step == 0 && c.rank() == 0) gradient = model.l2.W.grad().copy();
      Array before = model.l2.W.array().copy();
      own.update();
      if (step == 0) first[rank] = model.l2.W.array().copy();
      if (step == 0 && c.rank() == 0) {
        EXPECT_TRUE(xp::allclose(first[0], before - 0.5f * gradient));  // rank 0's alone
      }
    }
    got[rank] = numbers_of(model);
  });
  for (std::size_t rank = 1; rank < 3; ++rank) {
    EXPECT_TRUE(xp::array_equal(first[rank], first[0]));
    EXPECT_TRUE(xp::array_equal(got[rank], got[0]));
  }
  EXPECT_FALSE(xp::array_equal(got[0], start));
}

TEST(MultiNode, CapturedStepsAreTheEagerOnes) {
  Data data;
  Net start;
  start(constant(data.x), constant(data.t));
  std::vector<Array> got[2] = {std::vector<Array>(2), std::vector<Array>(2)};
  for (bool captured : {false, true}) {
    testing::run_ranks(2, [&](const Communicator& c) {
      Net model = start;
      Optimizer own = optimizers::Adam();
      own.setup(model);
      create_multi_node_optimizer(own, c);
      auto step = [&](const Variable& x, const Variable& t) { return own.update(model, x, t); };
      auto recorded = capture(step, {.replay_lists = true});
      for (int k = 0; k < 6; ++k) {
        Variable x = constant(data.part_of(data.x, c)), t = constant(data.part_of(data.t, c));
        if (captured) recorded(x, t);
        else step(x, t);
      }
      if (captured) {
        EXPECT_GT(recorded.stats().replays, 0) << recorded.stats().last_fallback;
      }
      got[captured][static_cast<std::size_t>(c.rank())] = numbers_of(model);
    });
  }
  for (std::size_t rank = 0; rank < 2; ++rank) {
    EXPECT_TRUE(xp::array_equal(got[1][rank], got[0][0]));
  }
}

// From GPU to GPU: the same bits on both, eager and captured, and the steps of one.
TEST(MultiNode, StepsOnGpus) {
  RENSA_NEEDS_GPUS(2);
  Data data;
  Net start;
  start(constant(data.x), constant(data.t));
  Net alone = start;
  Optimizer optimizer = optimizers::Adam();
  optimizer.setup(alone);
  for (int k = 0; k < 8; ++k) optimizer.update(alone, constant(data.x), constant(data.t));
  for (const MultiNodeOptimizerOptions& options :
       {MultiNodeOptimizerOptions{}, MultiNodeOptimizerOptions{.sharded = true},
        MultiNodeOptimizerOptions{.allreduce_grad_dtype = bfloat16}}) {
    std::vector<Array> got[2] = {std::vector<Array>(2), std::vector<Array>(2)};
    for (bool captured : {false, true}) {
      testing::run_ranks_on_gpus(2, [&](const Communicator& c) {
        Net model = start;
        model.to_device(c.device());
        Optimizer own = optimizers::Adam();
        own.setup(model);
        create_multi_node_optimizer(own, c, options);
        auto step = [&](const Variable& x, const Variable& t) { return own.update(model, x, t); };
        auto recorded = capture(step);
        Variable x = constant(data.part_of(data.x, c).to(c.device()));
        Variable t = constant(data.part_of(data.t, c).to(c.device()));
        for (int k = 0; k < 8; ++k) {
          if (captured) recorded(x, t);
          else step(x, t);
        }
        if (captured) {
          EXPECT_GT(recorded.stats().replays, 0) << recorded.stats().last_fallback;
        }
        got[captured][static_cast<std::size_t>(c.rank())] = numbers_of(model).to(cpu());
      });
    }
    for (std::size_t rank = 0; rank < 2; ++rank) {
      EXPECT_TRUE(xp::array_equal(got[1][rank], got[0][0]));
      EXPECT_TRUE(xp::array_equal(got[0][rank], got[0][0]));
    }
    if (!options.allreduce_grad_dtype) {
      EXPECT_TRUE(xp::allclose(got[0][0], numbers_of(alone), 1e-4, 1e-5));
    }
  }
}

TEST(MultiNode, ShardedStatesAreTheSameSteps) {
  Data data;
  Net start;
  start(constant(data.x), constant(data.t));
  auto train = [&](int size, const MultiNodeOptimizerOptions& options, bool captured,
                   std::vector<Array>& got, std::vector<std::int64_t>* kept = nullptr) {
    got.resize(static_cast<std::size_t>(size));
    testing::run_ranks(size, [&](const Communicator& c) {
      Net model = start;
      Optimizer own = optimizers::Adam();
      own.setup(model);
      own.add_hook(optimizer_hooks::WeightDecay(0.01));
      create_multi_node_optimizer(own, c, options);
      auto step = [&](const Variable& x, const Variable& t) { return own.update(model, x, t); };
      auto recorded = capture(step, {.replay_lists = true});
      for (int k = 0; k < 6; ++k) {
        Variable x = constant(data.part_of(data.x, c)), t = constant(data.part_of(data.t, c));
        if (captured) recorded(x, t);
        else step(x, t);
      }
      if (captured) {
        EXPECT_GT(recorded.stats().replays, 0) << recorded.stats().last_fallback;
      }
      got[static_cast<std::size_t>(c.rank())] = numbers_of(model);
      if (!kept) return;
      for (const ParameterRef& p : model.params()) {
        for (const Array& state : p.update_rule()->states) {
          (*kept)[static_cast<std::size_t>(c.rank())] += state.size();
        }
      }
    });
  };
  for (int size : {1, 2, 4}) {
    std::vector<Array> whole, sharded, captured;
    std::vector<std::int64_t> kept(static_cast<std::size_t>(size));
    train(size, {}, false, whole);
    train(size, {.sharded = true}, false, sharded, &kept);
    train(size, {.sharded = true}, true, captured);
    for (std::size_t rank = 0; rank < whole.size(); ++rank) {
      EXPECT_TRUE(xp::array_equal(sharded[rank], whole[0])) << size;
      EXPECT_TRUE(xp::array_equal(captured[rank], whole[0])) << size;
      EXPECT_LT(kept[rank], size == 1 ? 167 : 2 * 83);
    }
    // Two of Adam's for each of 6 x 8 + 8 + 8 x 3 + 3 numbers, on one rank or another.
    EXPECT_EQ(std::accumulate(kept.begin(), kept.end(), std::int64_t{0}), 2 * 83);
  }
}

TEST(MultiNode, NormsAreThoseOfAllShares) {
  Data data;
  Net start;
  start(constant(data.x), constant(data.t));
  auto make = [] {
    Optimizer own = optimizers::MomentumSGD(0.5);
    own.add_hook(optimizer_hooks::GradientClipping(0.05));
    return own;
  };
  Net alone = start;
  Optimizer optimizer = make();
  optimizer.setup(alone);
  for (int step = 0; step < 5; ++step) {
    optimizer.update(alone, constant(data.x), constant(data.t));
  }
  Array want = numbers_of(alone);
  for (bool sharded : {false, true}) {
    testing::run_ranks(4, [&](const Communicator& c) {
      Net model = start;
      Optimizer own = make();
      own.setup(model);
      create_multi_node_optimizer(own, c, {.sharded = sharded});
      for (int step = 0; step < 5; ++step) {
        own.update(model, constant(data.part_of(data.x, c)), constant(data.part_of(data.t, c)));
      }
      EXPECT_TRUE(xp::allclose(numbers_of(model), want, 1e-5, 1e-6));
    });
  }
}

TEST(MultiNode, ADynamicLossScaleLeavesOutTheSameUpdates) {
  Data data;
  for (bool sharded : {false, true}) {
    std::vector<Array> got(3), scales(3);
    testing::run_ranks(3, [&](const Communicator& c) {
      Net model;
      Optimizer own = optimizers::Adam();
      own.setup(model);
      own.loss_scaling({.interval = 2});
      create_multi_node_optimizer(own, c, {.sharded = sharded});
      Array before;
      for (int step = 0; step < 6; ++step) {
        Array x = data.part_of(data.x, c);
        if (step == 3) {
          before = numbers_of(model);
          if (c.rank() == 1) x = xp::full_like(x, INFINITY);  // on one rank alone
        }
        own.update(model, constant(x), constant(data.part_of(data.t, c)));
        if (step == 3) {
          EXPECT_TRUE(xp::array_equal(numbers_of(model), before));
        }
      }
      got[static_cast<std::size_t>(c.rank())] = numbers_of(model);
      scales[static_cast<std::size_t>(c.rank())] = own.loss_scale();
      EXPECT_FALSE(xp::array_equal(numbers_of(model), before));
    });
    for (std::size_t rank = 1; rank < 3; ++rank) {
      EXPECT_TRUE(xp::array_equal(got[rank], got[0]));
      EXPECT_TRUE(xp::array_equal(scales[rank], scales[0]));
    }
    EXPECT_TRUE(xp::all(xp::isfinite(got[0])).item<bool>());
  }
}

TEST(MultiNode, GradientsAreSentAsToldTo) {
  Data data;
  Net start;
  start(constant(data.x), constant(data.t));
  Array begin = numbers_of(start);
  std::vector<Array> got(2);
  for (bool sharded : {false, true}) {
    testing::run_ranks(2, [&](const Communicator& c) {
      Net model = start;
      Optimizer own = optimizers::SGD(1);
      own.setup(model);
      create_multi_node_optimizer(own, c, {.allreduce_grad_dtype = bfloat16, .sharded = sharded});
      own.update(model, constant(data.part_of(data.x, c)), constant(data.part_of(data.t, c)));
      if (c.rank() == 0) got[sharded] = begin - numbers_of(model);
    });
  }
  EXPECT_TRUE(xp::array_equal(got[1], got[0]));
  Net alone = start;
  Optimizer optimizer = optimizers::SGD(1);
  optimizer.setup(alone);
  optimizer.update(alone, constant(data.x), constant(data.t));
  Array want = begin - numbers_of(alone);
  EXPECT_TRUE(xp::allclose(got[0], want, 0.02, 1e-4));
  EXPECT_FALSE(xp::allclose(got[0], want, 1e-5, 1e-7));
}

/// Two layers, of which a call takes one or both.
struct Two : Chain<Two> {
  L::Linear a{3, 2}, b{3, 2};
  void members(Visitor& v) override { v("a", a), v("b", b); }
};

TEST(MultiNode, DoubleBufferingUpdatesWithTheMeansOfTheStepBefore) {
  Data data;
  Net start;
  start(constant(data.x), constant(data.t));
  constexpr int kSteps = 6;
  Net alone = start;
  Optimizer optimizer = optimizers::MomentumSGD(0.2);
  optimizer.setup(alone);
  std::vector<Array> before;
  for (int step = 0; step < kSteps; ++step) {
    alone.cleargrads();
    alone(constant(data.x), constant(data.t)).backward();
    std::vector<Array> late = std::move(before);
    before.clear();
    for (const ParameterRef& p : alone.params()) before.push_back(p.grad().copy());
    if (late.empty()) continue;
    std::size_t i = 0;
    for (const ParameterRef& p : alone.params()) p.set_grad(late[i++]);
    optimizer.update();
  }
  Array expected = numbers_of(alone);
  testing::run_ranks(3, [&](const Communicator& c) {
    Net model = start;
    Optimizer own = optimizers::MomentumSGD(0.2);
    own.setup(model);
    create_multi_node_optimizer(own, c, {.double_buffering = true});
    auto captured = capture(
        [&](const Variable& x, const Variable& t) {
          Variable loss = model(x, t);
          model.cleargrads();
          own.backward(loss);
          own.update();
          return loss;
        },
        {.replay_lists = true});
    Variable x = constant(data.part_of(data.x, c)), t = constant(data.part_of(data.t, c));
    for (int step = 0; step < kSteps; ++step) {
      if (step == 3) own.set_loss_scale(8);
      captured(x, t);
    }
    EXPECT_EQ(own.t(), kSteps - 1);
    EXPECT_TRUE(xp::allclose(numbers_of(model), expected, 1e-5, 1e-6));
    for (const Array& other : c.allgather(numbers_of(model))) {
      EXPECT_TRUE(xp::array_equal(other, numbers_of(model)));
    }
    EXPECT_EQ(captured.stats().replays, 0);
    EXPECT_THAT(captured.stats().last_fallback, HasSubstr("double_buffering"));
    // Gradients of other parameters than those that are on their way.
    model.l1.W.set_update_enabled(false);
    Array unchanged = numbers_of(model);
    captured(x, t);
    EXPECT_TRUE(xp::array_equal(numbers_of(model), unchanged));
    captured(x, t);
    EXPECT_FALSE(xp::array_equal(numbers_of(model), unchanged));
    own.loss_scaling();
    EXPECT_THAT(testing::thrown<NotImplementedError>([&] { own.update(); }),
                HasSubstr("loss_scaling({.scale"));
  });
}

// A pack of one array, which the update writes to while it is on its way.
TEST(MultiNode, DoubleBufferingOfOneParameter) {
  constexpr std::int64_t kSize = 3'000'000;
  testing::run_ranks(2, [](const Communicator& c) {
    L::Linear model(1, kSize, {.nobias = true});
    model.W.array().fill(0);
    Optimizer own = optimizers::SGD(1);
    own.setup(model);
    create_multi_node_optimizer(own, c, {.double_buffering = true});
    double expected = 0;
    for (int step = 0; step < 8; ++step) {
      model.W.set_grad(xp::full({kSize, 1}, step * 10 + 2 * c.rank(), float32));
      own.update();
      if (step > 0) expected -= (step - 1) * 10 + 1;
      EXPECT_EQ(model.W.array().min().item<double>(), expected) << step;
      EXPECT_EQ(model.W.array().max().item<double>(), expected) << step;
    }
  });
}

TEST(MultiNode, GradientsThatSomeRanksLack) {
  auto step = [](const Communicator& c, const MultiNodeOptimizerOptions& options) {
    Two model;
    for (L::Linear* l : {&model.a, &model.b}) l->W.array().fill(1);
    Optimizer own = optimizers::SGD(1);
    own.setup(model);
    create_multi_node_optimizer(own, c, options);
    Variable x = constant(xp::ones({1, 3}));
    model.cleargrads();
    F::sum(c.rank() == 0 ? model.a(x) : model.b(x)).backward();
    own.update();
    return std::pair(model.a.W.array().copy(), model.b.W.array().copy());
  };
  for (bool sharded : {false, true}) {
    testing::run_ranks(2, [&](const Communicator& c) {
      // Of one shape, and all the same not the same.
      std::string text =
          testing::thrown<CommunicationError>([&] { step(c, {.sharded = sharded}); });
      EXPECT_THAT(text, HasSubstr("2 gradients"));
    });
    testing::run_ranks(2, [&](const Communicator& c) {
      auto [a, b] = step(c, {.zero_fill = true, .sharded = sharded});
      EXPECT_EQ(a.to_vector<float>(), std::vector<float>(6, 0.5f));
      EXPECT_EQ(b.to_vector<float>(), std::vector<float>(6, 0.5f));
    });
  }
}

TEST(MultiNode, WhatCannotBeShared) {
  testing::run_ranks(2, [&](const Communicator& c) {
    Data data;
    Net model;
    Optimizer own = optimizers::SGD(0.1);
    own.setup(model);
    EXPECT_THROW(create_multi_node_optimizer(own, c, {.allreduce_grad_dtype = int32}), DtypeError);
    EXPECT_THAT(testing::thrown<ValueError>([&] {
                  create_multi_node_optimizer(own, c, {.sharded = true, .double_buffering = true});
                }),
                HasSubstr("double_buffering"));
    create_multi_node_optimizer(own, c);
    EXPECT_THAT(testing::thrown<ValueError>([&] { create_multi_node_optimizer(own, c); }),
                HasSubstr("already"));
    own.add_hook(optimizer_hooks::GradientNoise(0.1));
    EXPECT_THAT(testing::thrown<NotImplementedError>(
                    [&] { own.update(model, constant(data.x), constant(data.t)); }),
                HasSubstr("GradientNoise"));
    training::ParallelUpdater updater(
        iterators::SerialIterator(datasets::TupleDataset(data.x, data.t), 8), own,
        {.devices = {{"main", cpu()}, {"second", cpu()}}});
    EXPECT_THAT(testing::thrown<NotImplementedError>([&] { updater.update(); }),
                HasSubstr("create_multi_node_optimizer"));
  });
}

TEST(MultiNode, GatheredStatesAreThoseOfOneRank) {
  Data data;
  Net start;
  start(constant(data.x), constant(data.t));
  testing::TemporaryFolder folder;
  std::vector<Array> got(2);
  for (bool sharded : {false, true}) {
    testing::run_ranks(2, [&](const Communicator& c) {
      Net model = start;
      Optimizer own = optimizers::Adam();
      own.setup(model);
      create_multi_node_optimizer(own, c, {.sharded = sharded});
      Variable x = constant(data.part_of(data.x, c)), t = constant(data.part_of(data.t, c));
      for (int step = 0; step < 3; ++step) own.update(model, x, t);
      gather_states(own);
      for (const ParameterRef& p : model.params()) EXPECT_EQ(p.update_rule()->states.size(), 2u);
      serializers::save_npz(folder / fmt::format("{}.npz", c.rank()), own);
      serializers::save_npz(folder / fmt::format("model{}.npz", c.rank()), model);
      Net other;  // waits for its shapes, which the file has
      Optimizer resumed = optimizers::Adam();
      resumed.setup(other);
      create_multi_node_optimizer(resumed, c, {.sharded = sharded});
      serializers::load_npz(folder / fmt::format("model{}.npz", c.rank()), other);
      serializers::load_npz(folder / fmt::format("{}.npz", c.rank()), resumed);
      for (int step = 0; step < 2; ++step) own.update(model, x, t), resumed.update(other, x, t);
      EXPECT_TRUE(xp::array_equal(numbers_of(other), numbers_of(model)));
      if (c.rank() == 0) got[sharded] = numbers_of(model);
    });
  }
  EXPECT_TRUE(xp::array_equal(got[1], got[0]));
}

TEST(MultiNode, ModelsThatDiffer) {
  testing::run_ranks(2, [&](const Communicator& c) {
    L::Linear model(4, c.rank() == 0 ? 3 : 5);
    std::string text = testing::thrown<ValueError>([&] { bcast_data(c, model); });
    EXPECT_THAT(text, HasSubstr("/W float32 (3, 4)"));
    EXPECT_THAT(text, HasSubstr("/W float32 (5, 4)"));
    EXPECT_THAT(text, HasSubstr("rank 1"));
  });
  testing::run_ranks(2, [&](const Communicator& c) {
    L::Linear made(4, 3), waits(std::int64_t{3});
    std::string text =
        testing::thrown<ValueError>([&] { bcast_data(c, c.rank() == 0 ? made : waits); });
    EXPECT_THAT(text, HasSubstr("waits for its shape"));
  });
}

}  // namespace
}  // namespace rensa

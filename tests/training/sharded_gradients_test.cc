// Gradients that each rank keeps a share of (ZeRO 2): the steps of all gradients, and the memory of
// a share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "rensa/array/communicator.h"
#include "rensa/array/creation.h"
#include "rensa/array/manipulation.h"
#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/capture.h"
#include "rensa/links/links.h"
#include "rensa/optimizers/multi_node_optimizer.h"
#include "rensa/optimizers/optimizers.h"
#include "tests/ranks.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using ::testing::HasSubstr;

constexpr MultiNodeOptimizerOptions kSharded{.sharded = true, .sharded_gradients = true};

/// One layer is used by two functions, of which one may be within F::forget.
struct Net : Chain<Net> {
  L::Linear l1, twice, l3;
  bool forgets;
  Net(std::int64_t in, std::int64_t units, bool forgets = false)
      : l1(in, units), twice(units, units), l3(units, std::int64_t{3}), forgets(forgets) {}
  void members(Visitor& v) override { v("l1", l1), v("twice", twice), v("l3", l3); }
  Variable operator()(const Variable& x, const Variable& t) const {
    Variable h = F::relu(twice(F::relu(l1(x))));
    auto again = [this](const Variable& h) { return F::tanh(twice(h)); };
    h = forgets ? F::forget(again, h) : again(h);
    return F::softmax_cross_entropy(l3(h), t);
  }
};

struct Data {
  Array x, t;
  Data(std::int64_t n, std::int64_t in) {
    xp::random::seed(11);
    x = xp::random::normal(0, 1, {n, in}, float32, cpu());
    t = xp::random::randint(0, 3, {n}, int64, cpu());
  }
  /// A rank's k-th part of `parts`, on its device.
  Variables part(const Communicator& c, std::int64_t k = 0, std::int64_t parts = 1) const {
    std::int64_t n = t.shape(0) / c.size() / parts, from = (c.rank() * parts + k) * n;
    Slice ours(from, from + n);
    return {constant(x[ours].to(c.device())), constant(t[ours].to(c.device()))};
  }
};

Array numbers_of(const Link& model) {
  std::vector<Array> flat;
  for (const ParameterRef& p : model.params()) flat.push_back(p.array().to(cpu()).ravel());
  return xp::concatenate(flat);
}

/// Bytes of memory that a model's gradients lie in.
std::int64_t gradient_bytes(const Link& model) {
  std::int64_t bytes = 0;
  for (const ParameterRef& p : model.params()) bytes += p.grad().storage()->nbytes();
  return bytes;
}

struct Trained {
  std::vector<Array> numbers;       // by rank
  std::vector<std::int64_t> bytes;  // of gradients after backward
};

Trained train(const Net& start, const Data& data, int size, bool on_gpus,
              const MultiNodeOptimizerOptions& options, bool captured) {
  Trained got{std::vector<Array>(static_cast<std::size_t>(size)),
              std::vector<std::int64_t>(static_cast<std::size_t>(size))};
  auto job = [&](const Communicator& c) {
    auto rank = static_cast<std::size_t>(c.rank());
    Net model = start;
    model.to_device(c.device());
    Optimizer optimizer = optimizers::Adam();
    optimizer.setup(model);
    optimizer.add_hook(optimizer_hooks::GradientClipping(0.5));
    create_multi_node_optimizer(optimizer, c, options);
    auto step = [&](const Variable& x, const Variable& t) { return optimizer.update(model, x, t); };
    auto recorded = capture(step, {.replay_lists = true});
    Variables part = data.part(c);
    for (int k = 0; k < 6; ++k) {
      if (captured) recorded(part[0], part[1]);
      else step(part[0], part[1]);
    }
    if (captured) {
      EXPECT_GT(recorded.stats().replays, 0) << recorded.stats().last_fallback;
    }
    got.numbers[rank] = numbers_of(model);
    got.bytes[rank] = gradient_bytes(model);
  };
  if (on_gpus) testing::run_ranks_on_gpus(size, job);
  else testing::run_ranks(size, job);
  return got;
}

void expect_same_steps(const Net& start, const Data& data, int size, bool on_gpus) {
  SCOPED_TRACE(size);
  Trained whole = train(start, data, size, on_gpus, {.sharded = true}, false);
  for (bool captured : {false, true}) {
    Trained sharded = train(start, data, size, on_gpus, kSharded, captured);
    std::int64_t kept = 0;
    for (std::size_t rank = 0; rank < whole.numbers.size(); ++rank) {
      // What is forgotten comes by itself: the mean of sums is a sum of means.
      const Array &got = sharded.numbers[rank], &want = whole.numbers[0];
      EXPECT_TRUE(start.forgets ? xp::allclose(got, want, 1e-4, 1e-5) : xp::array_equal(got, want))
          << captured;
      EXPECT_TRUE(xp::array_equal(got, sharded.numbers[0]));
      kept += sharded.bytes[rank];
      EXPECT_EQ(whole.bytes[rank], whole.bytes[0]);
    }
    // All of them once, and a number for each that is another rank's.
    EXPECT_GE(kept, whole.bytes[0]);
    EXPECT_LE(kept, whole.bytes[0] + 6 * 512 * (size - 1));
  }
}

TEST(ShardedGradients, AreTheSameSteps) {
  Data data(48, 6);
  for (bool forgets : {false, true}) {
    Net start(6, 8, forgets);
    for (int size : {1, 2, 4}) expect_same_steps(start, data, size, false);
  }
}

TEST(ShardedGradients, OfSeveralPacks) {
  Data data(8, 16);
  expect_same_steps(Net(16, 2600), data, 2, false);  // twice 27 MB
}

TEST(ShardedGradients, OfGpus) {
  RENSA_NEEDS_GPUS(2);
  Data data(8, 16);
  expect_same_steps(Net(16, 2600), data, 2, true);
}

// Each part's gradients are exchanged, and added up where they belong.
TEST(ShardedGradients, OfPartsAddUp) {
  Data data(48, 6);
  Net start(6, 8);
  std::vector<Array> got[2] = {std::vector<Array>(2), std::vector<Array>(2)};
  for (bool shards_gradients : {false, true}) {
    testing::run_ranks(2, [&](const Communicator& c) {
      Net model = start;
      Optimizer optimizer = optimizers::MomentumSGD(0.3);
      optimizer.setup(model);
      create_multi_node_optimizer(optimizer, c,
                                  {.sharded = true, .sharded_gradients = shards_gradients});
      for (int k = 0; k < 5; ++k) {
        model.cleargrads();
        for (int part = 0; part < 3; ++part) {
          Variables in = data.part(c, part, 3);
          optimizer.backward(model(in[0], in[1]), 1.0 / 3);
        }
        optimizer.update();
      }
      got[shards_gradients][static_cast<std::size_t>(c.rank())] = numbers_of(model);
    });
  }
  EXPECT_TRUE(xp::array_equal(got[1][1], got[1][0]));
  EXPECT_TRUE(xp::allclose(got[1][0], got[0][0], 1e-5, 1e-6));
}

// What backward has not exchanged, because it is not the optimizer's, comes at the update.
TEST(ShardedGradients, OfVariableBackwardComeAtTheUpdate) {
  Data data(48, 6);
  Net start(6, 8);
  std::vector<Array> got[2] = {std::vector<Array>(2), std::vector<Array>(2)};
  for (bool by_hand : {false, true}) {
    testing::run_ranks(2, [&](const Communicator& c) {
      Net model = start;
      Optimizer optimizer = optimizers::Adam();
      optimizer.setup(model);
      create_multi_node_optimizer(optimizer, c, kSharded);
      Variables in = data.part(c);
      for (int k = 0; k < 4; ++k) {
        model.cleargrads();
        Variable loss = model(in[0], in[1]);
        if (by_hand) loss.backward();
        else optimizer.backward(loss);
        optimizer.update();
      }
      got[by_hand][static_cast<std::size_t>(c.rank())] = numbers_of(model);
    });
  }
  for (std::size_t rank = 0; rank < 2; ++rank) {
    EXPECT_TRUE(xp::array_equal(got[1][rank], got[0][0]));
    EXPECT_TRUE(xp::array_equal(got[0][rank], got[0][0]));
  }
}

TEST(ShardedGradients, ThatAreChangedBeforeTheUpdate) {
  Data data(48, 6);
  Net start(6, 8);
  for (const char* how : {"scaled", "more of them"}) {
    testing::run_ranks(2, [&](const Communicator& c) {
      Net model = start;
      Optimizer optimizer = optimizers::SGD(0.1);
      optimizer.setup(model);
      create_multi_node_optimizer(optimizer, c, kSharded);
      Variables in = data.part(c);
      optimizer.backward(model(in[0], in[1]));
      if (how == std::string("more of them")) {
        model(in[0], in[1]).backward();
      } else {
        for (const ParameterRef& p : model.params()) p.set_grad(p.grad() * 2.f);
      }
      std::string text = testing::message_of<ValueError>([&] { optimizer.update(); });
      EXPECT_THAT(text, HasSubstr("changed after backward had exchanged it"));
    });
  }
  testing::run_ranks(1, [&](const Communicator& c) {
    Optimizer optimizer = optimizers::SGD(0.1);
    EXPECT_THROW(create_multi_node_optimizer(optimizer, c, {.sharded_gradients = true}),
                 ValueError);
  });
}

}  // namespace
}  // namespace rensa

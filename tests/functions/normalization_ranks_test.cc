// Batch normalization over the ranks of a group, against that of the whole batch on one.
#include <gtest/gtest.h>

#include <vector>

#include "rensa/array/manipulation.h"
#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/autograd/backward.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/normalization.h"
#include "rensa/functions/reduction_functions.h"
#include "rensa/graph/capture.h"
#include "rensa/links/normalization_links.h"
#include "tests/ranks.h"
#include "tests/testing.h"

namespace rensa {
namespace {

/// A batch of 12 samples of 3 channels, cut for the ranks after `ends`.
struct Batch {
  explicit Batch(Dtype dtype = float64) {
    x = xp::random::uniform(-1, 3, {12, 3, 2, 2}, float64).astype(dtype);
    weight = xp::random::uniform(-1, 1, {12, 3, 2, 2}, float64).astype(dtype);
    gamma = xp::random::uniform(0.5, 2, {3}, float64).astype(dtype);
    beta = xp::random::uniform(-1, 1, {3}, float64).astype(dtype);
  }
  Array x, weight, gamma, beta;
};

struct Outcome {
  Array y, gx, ggamma, gbeta, ggx, mean, var;
};

/// Value, gradients of sum(weight * y^2), the gradient by x of the square of the one by x, and what
/// became of running statistics.
template <class Normalize>
Outcome outcome(const Normalize& f, const Array& x_given, const Array& weight, const Batch& all,
                const AxisList& axis) {
  Shape kept = axis.given() ? Shape{3, 2, 2} : Shape{3};
  auto of_kept = [&](const Array& a) {
    return axis.given() ? xp::broadcast_to(a.reshape({3, 1, 1}), kept).copy() : a;
  };
  Array mean = xp::zeros(kept, float64), var = xp::ones(kept, float64);
  Variable x(x_given, true), gamma(of_kept(all.gamma), true), beta(of_kept(all.beta), true);
  Variable y =
      f(x, gamma, beta,
        F::BatchNormalizationOptions{.running_mean = mean, .running_var = var, .axis = axis});
  Variables g = grad({F::sum(constant(weight) * y * y)}, {x, gamma, beta}, {}, true);
  Variable ggx = grad({F::sum(g[0] * g[0])}, {x})[0];
  return {y.array(), g[0].array(), g[1].array(), g[2].array(), ggx.array(), mean, var};
}

TEST(NormalizationOverRanks, IsThatOfTheWholeBatch) {
  Batch all;
  for (bool places : {false, true}) {
    AxisList axis = places ? AxisList{0} : AxisList();
    auto plain = [](const auto&... args) { return F::batch_normalization(args...); };
    Outcome want = outcome(plain, all.x, all.weight, all, axis);
    for (const std::vector<std::int64_t>& ends :
         {std::vector<std::int64_t>{12}, {6, 12}, {1, 12}, {4, 8, 12}, {5, 5, 12}}) {
      testing::run_ranks(static_cast<int>(ends.size()), [&](const Communicator& c) {
        auto rank = static_cast<std::size_t>(c.rank());
        Slice part(rank == 0 ? 0 : ends[rank - 1], ends[rank]);
        auto joint = [&](const auto&... args) { return F::batch_normalization(c, args...); };
        Outcome got = outcome(joint, all.x[part], all.weight[part], all, axis);
        EXPECT_TRUE(xp::allclose(got.y, want.y[part], 1e-10, 1e-10));
        EXPECT_TRUE(xp::allclose(got.gx, want.gx[part], 1e-8, 1e-10));
        EXPECT_TRUE(xp::allclose(got.ggx, want.ggx[part], 1e-7, 1e-9));
        EXPECT_TRUE(xp::allclose(c.allreduce(got.ggamma), want.ggamma, 1e-8, 1e-10));
        EXPECT_TRUE(xp::allclose(c.allreduce(got.gbeta), want.gbeta, 1e-8, 1e-10));
        EXPECT_TRUE(xp::allclose(got.mean, want.mean, 1e-10, 1e-12));
        EXPECT_TRUE(xp::allclose(got.var, want.var, 1e-10, 1e-12));
      });
    }
  }
}

TEST(NormalizationOverRanks, KeepsTheDtypeAndTheLayout) {
  for (Dtype dtype : {float16, bfloat16, float32}) {
    Batch all(dtype);
    Array want = F::batch_normalization(all.x, all.gamma, all.beta).array();
    testing::run_ranks(2, [&](const Communicator& c) {
      Slice part(6 * c.rank(), 6 * c.rank() + 6);
      Array x = all.x[part].transpose({0, 2, 3, 1}).ascontiguous().transpose({0, 3, 1, 2});
      Array y = F::batch_normalization(c, x, all.gamma, all.beta).array();
      EXPECT_EQ(y.dtype(), dtype);
      EXPECT_EQ(y.strides(), x.strides());
      double tolerance = dtype == bfloat16 ? 2e-2 : dtype == float16 ? 2e-3 : 1e-5;
      EXPECT_TRUE(
          xp::allclose(y.astype(float64), want[part].astype(float64), tolerance, tolerance));
    });
  }
}

/// Two normalizations in a model of two levels.
struct Net : Chain<Net> {
  struct Block : Chain<Block> {
    L::BatchNormalization bn{3};
    void members(Visitor& v) override { v("bn", bn); }
  };
  Block block;
  L::BatchNormalization last{3};
  void members(Visitor& v) override { v("block", block), v("last", last); }
  Variable operator()(const Variable& x) const { return last(block.bn(x) * 2.0); }
};

TEST(NormalizationOverRanks, OfAWholeModelEagerAndCaptured) {
  Batch all(float32);
  Net alone;
  Array want;
  for (int k = 0; k < 4; ++k) want = alone(all.x).array();
  std::vector<Array> y[2] = {std::vector<Array>(2), std::vector<Array>(2)};
  for (bool captured : {false, true}) {
    testing::run_ranks(2, [&](const Communicator& c) {
      Net model;
      L::synchronize_batch_normalization(model, c);
      Variable x = constant(all.x[Slice(6 * c.rank(), 6 * c.rank() + 6)]);
      auto step = [&](const Variable& in) { return model(in); };
      auto recorded = capture(step, {.replay_lists = true});
      Array& last = y[captured][static_cast<std::size_t>(c.rank())];
      for (int k = 0; k < 4; ++k) last = (captured ? recorded(x) : step(x)).array().copy();
      if (captured) {
        EXPECT_GT(recorded.stats().replays, 0) << recorded.stats().last_fallback;
      }
      EXPECT_TRUE(xp::allclose(model.last.avg_mean, alone.last.avg_mean, 1e-5, 1e-6));
      EXPECT_TRUE(xp::allclose(model.block.bn.avg_var, alone.block.bn.avg_var, 1e-5, 1e-6));
      UsingConfig off(&Config::train, false);  // no rank waits for another one
      if (c.rank() == 0) {
        EXPECT_TRUE(xp::allclose(
            model(all.x).array(), [&] { return alone(all.x).array(); }(), 1e-5, 1e-5));
      }
    });
  }
  for (std::size_t rank = 0; rank < 2; ++rank) {
    EXPECT_TRUE(xp::array_equal(y[1][rank], y[0][rank]));
    auto begin = static_cast<std::int64_t>(6 * rank);
    EXPECT_TRUE(xp::allclose(y[0][rank], want[Slice(begin, begin + 6)], 1e-5, 1e-5));
  }
}

TEST(NormalizationOverRanks, WhatDoesNotFitIsFoundAlone) {
  Batch all;
  testing::run_ranks(2, [&](const Communicator& c) {
    Array three = xp::ones({3}, float64), four = xp::ones({4}, float64);
    EXPECT_THROW(F::batch_normalization(c, all.x, four, four), ShapeError);
    EXPECT_THROW(F::batch_normalization(c, all.x, three, four), ShapeError);
    EXPECT_THROW(F::batch_normalization(c, all.x, three, three, {.running_mean = three}),
                 ValueError);
    c.barrier();
  });
}

}  // namespace
}  // namespace rensa

// The planner's order and layout, and the rewrites, on small recorded lists.
#include "rensa/graph/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "rensa/array/exchange.h"
#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/core/update_rule_ids.h"
#include "rensa/functions/operations/update_parameters/update_parameters.h"
#include "rensa/graph/patterns.h"
#include "rensa/graph/rewrite.h"
#include "rensa/operations/elementwise/elementwise.h"
#include "rensa/operations/matmul/matmul.h"
#include "tests/graph/heap_in_use.h"

namespace rensa {
namespace {

/// Records what `step` launches.
template <class F> void record(Recording& recording, F step) {
  ThreadState::current().recorder = &recording;
  step();
  ThreadState::current().recorder = nullptr;
}

TEST(Plan, IndependentOperationsHaveNoOrder) {
  Array x = xp::ones({1000});
  Array a, b, c;
  Recording recording;
  record(recording, [&] {
    a = x + 1;
    b = x * 3;
    c = a + b;
  });
  Plan plan = make_plan(recording, true);
  ASSERT_EQ(plan.dependencies.size(), 3u);
  EXPECT_TRUE(plan.dependencies[0].empty());
  EXPECT_TRUE(plan.dependencies[1].empty());
  EXPECT_EQ(plan.dependencies[2], (std::vector<int>{1, 0}));
  EXPECT_EQ(plan.longest_chain(), 2);
}

TEST(Plan, ChainsThroughEachOperation) {
  Array x = xp::ones({1000}), a, b, c, d, e;
  Recording recording;
  record(recording, [&] {
    a = x + 1;
    b = a * 2;
    c = x * 3;
    d = b + c;
    e = x * 5;
  });
  Plan plan = make_plan(recording, true);
  EXPECT_EQ(plan.chains(), (std::vector<std::int64_t>{3, 3, 2, 3, 1}));
  EXPECT_EQ(plan.longest_chain(), 3);
  EXPECT_TRUE(Plan().chains().empty());
  EXPECT_EQ(Plan().longest_chain(), 0);
}

TEST(Plan, WithoutBranchesEachFollowsTheOneBefore) {
  Array x = xp::ones({1000});
  Array a, b;
  Recording recording;
  record(recording, [&] {
    a = x + 1;
    b = x * 3;
  });
  Plan plan = make_plan(recording, false);
  EXPECT_EQ(plan.dependencies[1], (std::vector<int>{0}));
}

TEST(Plan, OwnMemoryIsSharedAlongAChain) {
  Array x = xp::ones({1000});
  Array y;
  Recording recording;
  record(recording, [&] {
    y = x + 1;
    for (int i = 0; i < 10; ++i) y = y * 2;
  });
  Plan plan = make_plan(recording, true);
  // Ten intermediates of 4000 bytes; two are alive at a time. The result stays outside.
  EXPECT_EQ(plan.arenas.at(cpu())->nbytes(), 2 * 4096);
}

TEST(Plan, OfALongListTakesWhatIsInUseAtOnce) {
  Array x = xp::ones({1000}), y;
  Recording recording;
  record(recording, [&] {
    y = x + 1;
    for (int i = 0; i < 20000; ++i) y = y * 0.5f;
  });
  Plan plan = make_plan(recording, true);
  EXPECT_EQ(plan.arenas.at(cpu())->nbytes(), 2 * 4096);
  EXPECT_EQ(plan.longest_chain(), std::ssize(plan.dependencies));
  for (std::size_t i = 1; i < plan.dependencies.size(); ++i) {
    ASSERT_EQ(plan.dependencies[i], std::vector<int>{static_cast<int>(i) - 1});
  }
}

TEST(Plan, TheArenaComesWhenTheRunsMemoryIsGone) {
  constexpr std::int64_t kSize = 250000;  // a megabyte
  Array x = xp::ones({kSize}), y;
  testing::HeapInUse in_use;
  HeapHookScope scope(in_use);
  Recording recording;
  std::vector<Array> held_by_others;  // until the run is over
  record(recording, [&] {
    y = x + 1;
    for (int i = 0; i < 10; ++i) {
      held_by_others.push_back(y);
      y = y * 2;
    }
  });
  held_by_others.clear();
  std::int64_t held = in_use.now;
  EXPECT_GE(held, 11 * 4 * kSize);
  Plan plan = make_plan(recording, true);
  EXPECT_GE(plan.arenas.at(cpu())->nbytes(), 2 * 4 * kSize);
  EXPECT_LE(in_use.most, held + kSize);
  EXPECT_LE(in_use.now, 3 * 4 * kSize + kSize);
}

// As the gradients of a recurrent net's weights: made in any order, then summed one by one.
TEST(Plan, BranchesDoNotTakeManyTimesTheMemory) {
  constexpr std::int64_t kSize = 250000;  // a megabyte
  Array x = xp::ones({kSize}), sum;
  Recording recording;
  record(recording, [&] {
    Array scale = xp::ones({1}) + 1.f;
    sum = x * 2.f;
    for (int t = 0; t < 100; ++t) {
      scale = scale * 0.5f;
      sum = sum + x * scale;
    }
  });
  std::vector<float> eager = sum.to_vector<float>();
  Plan plan = make_plan(recording, true);
  EXPECT_LT(plan.arenas.at(cpu())->nbytes(), 20 * 4 * kSize);
  sum.fill(0);
  for (auto& operation : recording.operations) launch(*operation);
  EXPECT_EQ(sum.to_vector<float>(), eager);
}

TEST(Plan, MemoryThatBranchesUseTogetherIsNotShared) {
  Array x = xp::ones({1000});
  Array y;
  Recording recording;
  record(recording, [&] {
    Array a = (x + 1) * 2;
    Array b = (x + 3) * 4;
    y = a + b;
  });
  Plan plan = make_plan(recording, true);
  EXPECT_EQ(plan.arenas.at(cpu())->nbytes(), 4 * 4096);
}

TEST(Plan, MemoryThatIsWrittenInPartsIsSharedWithNothingThatAnyPartMayPass) {
  Array x = xp::ones({1000}), y;
  Recording recording;
  record(recording, [&] {
    Array first = xp::exp(x);
    Array second = xp::sqrt(first);
    Array parts = xp::empty({1000});
    parts[Slice(0, 500)] = second[Slice(0, 500)];
    parts[Slice(500, 1000)] = x[Slice(500, 1000)];  // waits for nothing
    y = parts * 2;
  });
  std::vector<float> eager = y.to_vector<float>();
  Plan plan = make_plan(recording, true);
  std::vector<const char*> written;
  for (auto& operation : recording.operations) {
    for (const Access& access : accesses(*operation)) {
      if (access.write) written.push_back(access.begin);
    }
  }
  ASSERT_EQ(written.size(), 5u);
  auto apart = [](const char* a, const char* b) { return std::abs(a - b) >= 4000; };
  EXPECT_TRUE(apart(written[2], written[0])) << "the other part may be written before `first`";
  EXPECT_TRUE(apart(written[2], written[1]));
}

TEST(Plan, ReplannedListGivesTheSameNumbers) {
  Array x = xp::arange(100, float32);
  Array y;
  Recording recording;
  record(recording, [&] { y = xp::sqrt(x * x + 1) - x.sum() / (x + 2); });
  std::vector<float> eager = y.to_vector<float>();
  Plan plan = make_plan(recording, true);
  y.fill(0);
  for (auto& operation : recording.operations) launch(*operation);
  EXPECT_EQ(y.to_vector<float>(), eager);
}

// Each pattern has its tests below, by the name that stands in the table.
TEST(Rewrite, ThePatternsAreTheseInThisOrder) {
  std::vector<std::string> names;
  for (const Pattern& pattern : patterns()) names.emplace_back(pattern.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{
                "fold_constant", "join_relu", "join_tanh", "join_gate", "join_convolution_relu",
                "join_normalize_relu", "join_normalize_relu_grad", "join_relu_grad_sums",
                "join_residual_rows", "join_rows_grad_sum", "join_bias_grad", "drop_unread",
                "join_scores_grad", "join_scores_back", "join_update", "split_updates"}));
}

TEST(Rewrite, ReluBecomesTheProductsEpilogue) {
  Array x = xp::random::normal(0, 1, {4, 5}), w = xp::random::normal(0, 1, {3, 5});
  Array b = xp::random::normal(0, 1, {3}), y;
  Recording recording;
  record(recording, [&] { y = xp::elementwise(ufunc::relu, {xp::linear(x, w, b)}); });
  std::vector<float> eager = y.to_vector<float>();
  ASSERT_EQ(recording.operations.size(), 2u);
  rewrite(recording);
  ASSERT_EQ(recording.operations.size(), 1u);
  EXPECT_EQ(dynamic_cast<operations::Matmul&>(*recording.operations[0]).activation,
            operations::Activation::relu);
  y.fill(0);
  launch(*recording.operations[0]);
  EXPECT_EQ(y.to_vector<float>(), eager);
}

TEST(Rewrite, ReluStaysWhereItsInputIsReadTwice) {
  Array x = xp::ones({4, 5}), w = xp::ones({3, 5}), b = xp::ones({3}), y, z;
  Recording recording;
  record(recording, [&] {
    Array h = xp::linear(x, w, b);
    y = xp::elementwise(ufunc::relu, {h});
    z = h * 2;
  });
  rewrite(recording);
  EXPECT_EQ(recording.operations.size(), 3u);
}

// The product would write there before others have read it, through a wrapper of their own.
TEST(Rewrite, ReluStaysWhereItsMemoryIsReadInBetween) {
  Array x = xp::random::normal(0, 1, {4, 5}), w = xp::random::normal(0, 1, {3, 5});
  Array b = xp::random::normal(0, 1, {3}), memory = xp::ones({4, 3}), y;
  auto theirs = [&] { return xp::wrap(memory.data(), memory.shape(), float32, memory.device()); };
  Recording recording;
  record(recording, [&] {
    Array h = xp::linear(x, w, b);
    y = theirs() * 2;
    Array out = theirs();
    operations::Elementwise relu("relu", ufunc::relu);
    relu.compute = float32;
    relu.num_inputs = 1;
    relu.in[0].array = h.operand();
    relu.out = out.operand();
    launch(relu);
  });
  rewrite(recording);
  EXPECT_EQ(recording.operations.size(), 3u);
}

// A step that holds the last handle of memory which it updates after it has read it.
TEST(Rewrite, WhatTheNextRunReadsIsWritten) {
  Array state = xp::ones({8}), x = xp::ones({8}), y;
  Recording recording;
  record(recording, [&] {
    Array held = std::move(state);
    y = x + held;
    held *= 0.5f;
  });
  rewrite(recording);
  EXPECT_EQ(recording.operations.size(), 2u);
}

TEST(Rewrite, ReluGradAndBiasGradBecomeOnePass) {
  Array gy = xp::random::normal(0, 1, {37, 65}), y = xp::random::normal(0, 1, {37, 65}), gz, gb;
  Recording recording;
  record(recording, [&] {
    gz = xp::elementwise(ufunc::relu_grad, {gy, y});
    gb = gz.sum(0);
  });
  std::vector<float> eager_gz = gz.to_vector<float>(), eager_gb = gb.to_vector<float>();
  rewrite(recording);
  ASSERT_EQ(recording.operations.size(), 1u);
  gz.fill(0), gb.fill(0);
  launch(*recording.operations[0]);
  EXPECT_EQ(gz.to_vector<float>(), eager_gz);
  EXPECT_EQ(gb.to_vector<float>(), eager_gb);
}

// gb's memory is read between the two.
TEST(Rewrite, ReluGradStaysWhereTheSumsMemoryIsUsedInBetween) {
  Array gy = xp::random::normal(0, 1, {37, 65}), y = xp::random::normal(0, 1, {37, 65}), gz, z;
  Array gb = xp::ones({65});
  Recording recording;
  record(recording, [&] {
    gz = xp::elementwise(ufunc::relu_grad, {gy, y});
    z = gb * 2;
    xp::sum(gz, {.axis = 0, .out = gb});
  });
  ASSERT_EQ(recording.operations.size(), 3u);
  rewrite(recording);
  EXPECT_EQ(recording.operations.size(), 3u);
}

TEST(Rewrite, WorkThatNobodySeesIsDropped) {
  Array x = xp::ones({8}), y;
  Recording recording;
  record(recording, [&] {
    { Array unused = xp::exp(x) * 2; }
    y = x + 1;
  });
  EXPECT_EQ(recording.operations.size(), 3u);
  rewrite(recording);
  EXPECT_EQ(recording.operations.size(), 1u);
}

TEST(Rewrite, AFilledConstantIsKeptAndNotFilledAgain) {
  Array x = xp::ones({8}), y;
  Recording recording;
  record(recording, [&] { y = x * xp::full({8}, 3.f); });
  rewrite(recording);
  ASSERT_EQ(recording.operations.size(), 1u);
  Plan plan = make_plan(recording, true);
  y.fill(0);
  launch(*recording.operations[0]);
  EXPECT_EQ(y.to_vector<float>(), std::vector<float>(8, 3.f));
}

TEST(Rewrite, UpdatesGoInPartsAsTheirGradientsCome) {
  constexpr std::int64_t kSize = 400000;  // 1.6 MB each
  std::vector<Array> parameters, gradients(3);
  for (int i = 0; i < 3; ++i) parameters.push_back(xp::ones({kSize}, float32) * float(i + 1));
  Array x = xp::random::normal(0, 1, {kSize}, float32);
  auto step = [&] {
    for (int i : {2, 0, 1}) gradients[static_cast<std::size_t>(i)] = x * float(i + 2);
    operations::UpdateParameters update("SGD", UpdateRuleId::sgd);
    update.set_size = 1;
    update.hyperparameters.emplace_back().real = 0.5;
    for (std::size_t i = 0; i < 3; ++i) {
      operations::UpdateTarget& target = update.targets.emplace_back();
      target.parameter = parameters[i].operand();
      target.gradient = gradients[i].operand();
    }
    launch(update);
  };
  Recording recording;
  record(recording, step);
  std::vector<std::vector<float>> once, twice;
  for (const Array& p : parameters) once.push_back(p.to_vector<float>());
  step();
  for (const Array& p : parameters) twice.push_back(p.to_vector<float>());
  rewrite(recording);
  std::vector<const char*> updated;
  for (std::size_t i = 0; i < 3; ++i) parameters[i].assign(xp::array(once[i]));
  for (auto& operation : recording.operations) {
    if (auto* part = dynamic_cast<operations::UpdateParameters*>(operation.get())) {
      ASSERT_EQ(part->targets.size(), 1u);
      updated.push_back(part->targets[0].parameter.view.data);
    }
    launch(*operation);
  }
  auto data = [&](std::size_t i) { return static_cast<const char*>(parameters[i].data()); };
  EXPECT_EQ(updated, (std::vector<const char*>{data(2), data(0), data(1)}));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(parameters[i].to_vector<float>(), twice[i]);
}

}  // namespace
}  // namespace rensa

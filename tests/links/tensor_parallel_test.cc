// Layers cut over ranks, against the whole ones.
#include "rensa/links/tensor_parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "rensa/array/manipulation.h"
#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/capture.h"
#include "rensa/links/initializers.h"
#include "rensa/links/normalization_links.h"
#include "rensa/links/transformer.h"
#include "rensa/optimizers/optimizers.h"
#include "tests/ranks.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using ::testing::HasSubstr;

/// In [-1, 1).
Array numbers(std::int64_t n) { return xp::arange(n, float32) * 37.f % 101.f * 0.02f - 1.f; }

/// A rank's part of a parameter: by elements, of each of `groups` in the whole one.
Array part_of(const Array& whole, std::int64_t groups, const Communicator& c) {
  return whole.reshape({groups, c.size(), -1})[{Slice(), c.rank()}].ravel();
}

struct Mlp : Chain<Mlp> {
  L::Linear l1{6, 8}, l2{8, 3};
  void members(Visitor& v) override { v("l1", l1), v("l2", l2); }
  Variable operator()(const Variable& x, const Variable& t) const {
    return F::softmax_cross_entropy(l2(F::relu(l1(x))), t);
  }
};

struct ParallelMlp : Chain<ParallelMlp> {
  L::ColumnParallelLinear l1;
  L::RowParallelLinear l2;
  ParallelMlp(const Communicator& c, const Mlp& whole) : l1(c, whole.l1), l2(c, whole.l2) {}
  void members(Visitor& v) override { v("l1", l1), v("l2", l2); }
  Variable operator()(const Variable& x, const Variable& t) const {
    return F::softmax_cross_entropy(l2(F::relu(l1(x))), t);
  }
};

/// The same, with the hidden layer whole on all ranks.
struct GatheredMlp : Chain<GatheredMlp> {
  L::ColumnParallelLinear l1;
  L::RowParallelLinear l2;
  GatheredMlp(const Communicator& c, const Mlp& whole)
      : l1(c, whole.l1, {.gather_output = true}), l2(c, whole.l2, {.scatter_input = true}) {}
  void members(Visitor& v) override { v("l1", l1), v("l2", l2); }
  Variable operator()(const Variable& x, const Variable& t) const {
    return F::softmax_cross_entropy(l2(F::relu(l1(x))), t);
  }
};

/// A transformer's layer and what classifies by it.
struct Block : Chain<Block> {
  L::TransformerEncoderLayer layer{8, 4, {.feedforward = 16, .dropout = 0}};
  L::Linear out{8, 3};
  void members(Visitor& v) override { v("layer", layer), v("out", out); }
  Variable operator()(const Variable& x, const Variable& t) const {
    return F::softmax_cross_entropy(out(F::mean(layer(x), {.axis = 1})), t);
  }
};

struct ParallelLayer : Chain<ParallelLayer> {
  L::ParallelMultiHeadAttention self_attn;
  L::ColumnParallelLinear linear1;
  L::RowParallelLinear linear2;
  L::LayerNormalization norm1, norm2;  // alike on all ranks
  ParallelLayer(const Communicator& c, const L::TransformerEncoderLayer& whole)
      : self_attn(c, whole.self_attn),
        linear1(c, whole.linear1),
        linear2(c, whole.linear2),
        norm1(whole.norm1),
        norm2(whole.norm2) {}
  void members(Visitor& v) override {
    v("self_attn", self_attn), v("linear1", linear1), v("linear2", linear2);
    v("norm1", norm1), v("norm2", norm2);
  }
  Variable operator()(const Variable& x) const {
    Variable h = norm1(x + self_attn(x));
    return norm2(h + linear2(F::relu(linear1(h, 2)), 2));
  }
};

struct ParallelBlock : Chain<ParallelBlock> {
  ParallelLayer layer;
  L::Linear out;
  ParallelBlock(const Communicator& c, const Block& whole)
      : layer(c, whole.layer), out(whole.out) {}
  void members(Visitor& v) override { v("layer", layer), v("out", out); }
  Variable operator()(const Variable& x, const Variable& t) const {
    return F::softmax_cross_entropy(out(F::mean(layer(x), {.axis = 1})), t);
  }
};

/// How parameters are cut: the number of groups; the others are whole on all ranks.
const std::map<std::string, std::int64_t> kCuts = {
    {"/l1/W", 1},
    {"/l1/b", 1},
    {"/l2/W", 3},
    {"/layer/self_attn/in_proj/W", 3},
    {"/layer/self_attn/in_proj/b", 3},
    {"/layer/self_attn/out_proj/W", 8},
    {"/layer/linear1/W", 1},
    {"/layer/linear1/b", 1},
    {"/layer/linear2/W", 8},
};

struct MlpData {
  using Whole = Mlp;
  using Parallel = ParallelMlp;
  Variable x = constant(numbers(72).reshape({12, 6}));
  Variable t = constant(xp::arange(12, int64) % 3);
};
struct GatheredMlpData : MlpData {
  using Parallel = GatheredMlp;
};

struct BlockData {
  using Whole = Block;
  using Parallel = ParallelBlock;
  Variable x = constant(numbers(240).reshape({6, 5, 8}));
  Variable t = constant(xp::arange(6, int64) % 3);
};

/// That each of `got`'s parameters, or its gradient, is this rank's part of `want`'s.
template <class Take>
void expect_parts(const Link& got, const Link& want, const Communicator& c, Take take) {
  auto parts = got.namedparams(), wholes = want.namedparams();
  ASSERT_EQ(parts.size(), wholes.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string& path = parts[i].path;
    ASSERT_EQ(path, wholes[i].path);
    Array part = take(parts[i].parameter).ravel(), whole = take(wholes[i].parameter);
    auto cut = kCuts.find(path);
    Array expected = cut == kCuts.end() ? whole.ravel() : part_of(whole, cut->second, c);
    ASSERT_EQ(part.shape(), expected.shape()) << path;
    EXPECT_TRUE(xp::allclose(part, expected, 1e-4, 1e-5)) << path << " of " << c.size();
  }
}

/// SGD with a hook that asks for norms.
template <class Hook> Optimizer with(Hook hook) {
  Optimizer optimizer = optimizers::SGD(0.3);
  optimizer.add_hook(hook);
  return optimizer;
}

template <class T> class TensorParallel : public ::testing::Test {};
using Networks = ::testing::Types<MlpData, GatheredMlpData, BlockData>;
TYPED_TEST_SUITE(TensorParallel, Networks);

TYPED_TEST(TensorParallel, IsTheWholeModel) {
  TypeParam data;
  typename TypeParam::Whole start;
  typename TypeParam::Whole whole = start;
  Variable loss = whole(data.x, data.t);
  loss.backward();
  for (auto make : std::initializer_list<Optimizer (*)()>{
           [] { return Optimizer(optimizers::SGD(0.3)); },
           // Roundings of gradients that are 0, such as those of keys' biases, count for nothing.
           [] { return Optimizer(optimizers::Adam({.alpha = 0.01, .eps = 1e-3})); },
           [] { return with(optimizer_hooks::GradientClipping(0.1)); },
           [] { return with(optimizer_hooks::GradientLARS(0.5, 0.1, 1e-3)); }}) {
    typename TypeParam::Whole trained = start;
    Optimizer optimizer = make();
    optimizer.setup(trained);
    for (int step = 0; step < 5; ++step) optimizer.update(trained, data.x, data.t);
    EXPECT_LT(trained(data.x, data.t).template item<float>(), loss.item<float>());
    for (int size : {1, 2, 4}) {
      testing::run_ranks(size, [&](const Communicator& c) {
        typename TypeParam::Parallel model(c, start);
        Variable own = model(data.x, data.t);
        EXPECT_NEAR(own.item<float>(), loss.item<float>(), 1e-5);
        own.backward();
        expect_parts(model, whole, c, [](const ParameterRef& p) { return p.grad(); });
        Optimizer learner = make();
        learner.setup(model);
        for (int step = 0; step < 5; ++step) learner.update(model, data.x, data.t);
        expect_parts(model, trained, c, [](const ParameterRef& p) { return p.array(); });
        for (const NamedParameter& p : model.namedparams()) {
          if (kCuts.contains(p.path)) continue;
          for (const Array& other : c.allgather(p.parameter.array())) {
            EXPECT_TRUE(xp::array_equal(other, p.parameter.array())) << p.path;
          }
        }
      });
    }
  }
}

TYPED_TEST(TensorParallel, RecordedStepsAreTheEagerOnes) {
  TypeParam data;
  typename TypeParam::Whole start;
  std::vector<Array> got[2] = {std::vector<Array>(2), std::vector<Array>(2)};
  for (bool captured : {false, true}) {
    testing::run_ranks(2, [&](const Communicator& c) {
      typename TypeParam::Parallel model(c, start);
      Optimizer own = optimizers::Adam(0.01);
      own.setup(model);
      own.add_hook(optimizer_hooks::GradientClipping(0.1));
      auto step = [&](const Variable& x, const Variable& t) { return own.update(model, x, t); };
      auto recorded = capture(step, {.replay_lists = true});
      for (int k = 0; k < 6; ++k) {
        Variable x = data.x * (1.0 + 0.1 * k);
        x = constant(x.array());
        if (captured) recorded(x, data.t);
        else step(x, data.t);
      }
      if (captured) {
        EXPECT_GT(recorded.stats().replays, 0) << recorded.stats().last_fallback;
      }
      std::vector<Array> flat;
      for (const ParameterRef& p : model.params()) flat.push_back(p.array().ravel());
      got[captured][static_cast<std::size_t>(c.rank())] = xp::concatenate(flat);
    });
  }
  for (std::size_t rank = 0; rank < 2; ++rank) {
    EXPECT_TRUE(xp::array_equal(got[1][rank], got[0][rank]));
  }
}

TYPED_TEST(TensorParallel, OnGpusEagerAndRecorded) {
  RENSA_NEEDS_GPUS(2);
  TypeParam data;
  typename TypeParam::Whole start, whole = start;
  Optimizer alone = optimizers::SGD(0.3);
  alone.setup(whole);
  for (int step = 0; step < 6; ++step) alone.update(whole, data.x, data.t);
  std::vector<Array> got[2] = {std::vector<Array>(2), std::vector<Array>(2)};
  for (bool captured : {false, true}) {
    testing::run_ranks_on_gpus(2, [&](const Communicator& c) {
      typename TypeParam::Parallel model(c, start);
      model.to_device(c.device());
      Optimizer own = optimizers::SGD(0.3);
      own.setup(model);
      auto step = [&](const Variable& x, const Variable& t) { return own.update(model, x, t); };
      auto recorded = capture(step);
      Variable x = constant(data.x.array().to(c.device()));
      Variable t = constant(data.t.array().to(c.device()));
      for (int k = 0; k < 6; ++k) {
        if (captured) recorded(x, t);
        else step(x, t);
      }
      if (captured) {
        EXPECT_GT(recorded.stats().replays, 0) << recorded.stats().last_fallback;
      }
      std::vector<Array> flat;
      for (const ParameterRef& p : model.params()) flat.push_back(p.array().ravel());
      got[captured][static_cast<std::size_t>(c.rank())] = xp::concatenate(flat).to(cpu());
      model.to_device(cpu());
      expect_parts(model, whole, c, [](const ParameterRef& p) { return p.array(); });
    });
  }
  for (std::size_t rank = 0; rank < 2; ++rank) {
    EXPECT_TRUE(xp::array_equal(got[1][rank], got[0][rank]));
  }
}

// An overflow in one rank's part of a gradient.
TEST(TensorParallelUpdates, AreLeftOutByAllRanks) {
  MlpData data;
  Mlp start;
  testing::run_ranks(2, [&](const Communicator& c) {
    ParallelMlp model(c, start);
    Optimizer optimizer = optimizers::SGD(0.3);
    optimizer.setup(model);
    optimizer.loss_scaling();
    for (bool overflows : {true, false}) {
      model(data.x, data.t).backward({.loss_scale = optimizer.loss_scale().item<double>()});
      if (overflows && c.rank() == 1) model.l1.W.grad().fill(HUGE_VAL);
      Array whole = model.l2.b.array().copy(), part = model.l2.W.array().copy();
      optimizer.update();
      EXPECT_EQ(xp::array_equal(model.l2.b.array(), whole), overflows);
      EXPECT_EQ(xp::array_equal(model.l2.W.array(), part), overflows);
      model.cleargrads();
    }
  });
}

TEST(ParallelLinear, GathersAndScatters) {
  L::Linear whole(12, 8, {.initial_bias = initializers::Normal(1)});
  Array x = numbers(48);
  for (const Shape& shape : {Shape{4, 12}, Shape{4, 3, 4}, Shape{2, 2, 12}}) {
    int batch_axes = shape == Shape{2, 2, 12} ? 2 : 1;
    Variable in(x.reshape(shape), true);
    Variable y = whole(in, batch_axes);
    whole.cleargrads();
    F::sum(y * y * y).backward();
    testing::run_ranks(4, [&](const Communicator& c) {
      L::ColumnParallelLinear column(c, whole, {.gather_output = true});
      L::RowParallelLinear row(c, whole, {.scatter_input = true});
      auto check = [&](const auto& layer, const Array& part_of_gradient) {
        Variable own(x.reshape(shape), true);
        Variable z = layer(own, batch_axes);
        EXPECT_TRUE(xp::allclose(z.array(), y.array(), 1e-4, 1e-5));
        F::sum(z * z * z).backward();
        EXPECT_TRUE(xp::allclose(own.grad(), in.grad(), 1e-4, 1e-4));
        EXPECT_TRUE(xp::allclose(layer.W.grad().ravel(), part_of_gradient, 1e-4, 1e-4));
      };
      check(column, part_of(whole.W.grad(), 1, c));
      check(row, part_of(whole.W.grad(), 8, c));
      EXPECT_TRUE(xp::allclose(column.b.grad(), part_of(whole.b.grad(), 1, c), 1e-4, 1e-4));
      EXPECT_TRUE(xp::allclose(row.b.grad(), whole.b.grad(), 1e-4, 1e-4));
    });
  }
}

TEST(ParallelLinear, StartsFromAWholeLayersWeights) {
  // One that looks at the shape, and at the rank.
  testing::run_ranks(2, [](const Communicator& c) {
    auto fill = [rank = c.rank()](const Array& out) {
      EXPECT_EQ(out.shape(0), 8);
      EXPECT_TRUE(out.ndim() == 1 || out.shape(1) == 6);
      out.assign(xp::arange(out.size(), float32).reshape(out.shape()) + 100.f * rank);
    };
    auto rank_0 = [](std::int64_t n) { return xp::arange(n, float32); };
    L::ColumnParallelLinear column(c, 6, 8, {.initialW = fill, .initial_bias = fill});
    EXPECT_EQ(column.W.shape(), (Shape{4, 6}));
    EXPECT_TRUE(xp::array_equal(column.W.array().ravel(), part_of(rank_0(48), 1, c)));
    EXPECT_TRUE(xp::array_equal(column.b.array(), part_of(rank_0(8), 1, c)));
    L::ColumnParallelLinear grouped(c, 6, 8, {.groups = 2, .initialW = fill});
    EXPECT_TRUE(xp::array_equal(grouped.W.array().ravel(), part_of(rank_0(48), 2, c)));
    L::RowParallelLinear row(c, 6, 8, {.initialW = fill, .initial_bias = fill});
    EXPECT_EQ(row.W.shape(), (Shape{8, 3}));
    EXPECT_TRUE(xp::array_equal(row.W.array().ravel(), part_of(rank_0(48), 8, c)));
    EXPECT_TRUE(xp::array_equal(row.b.array(), rank_0(8)));
    EXPECT_FALSE(L::RowParallelLinear(c, 6, 8, {.nobias = true}).b.defined());

    L::Linear frozen(4, 2);
    frozen.W.set_update_enabled(false);
    L::ColumnParallelLinear part_of_frozen(c, frozen);
    EXPECT_FALSE(part_of_frozen.W.update_enabled());
    EXPECT_TRUE(part_of_frozen.b.update_enabled());

    // Drawn numbers, and a copy's that starts anew.
    L::RowParallelLinear drawn(c, 64, 32, {.initial_bias = initializers::Normal(1)});
    L::RowParallelLinear anew = drawn.copy(CopyMode::init), same = drawn;
    EXPECT_FALSE(xp::array_equal(anew.b.array(), drawn.b.array()));
    EXPECT_FALSE(xp::array_equal(anew.W.array(), drawn.W.array()));
    EXPECT_TRUE(xp::array_equal(same.W.array(), drawn.W.array()));
    for (const auto* layer : {&drawn, &anew}) {
      std::vector<Array> bs = c.allgather(layer->b.array()), Ws = c.allgather(layer->W.array());
      EXPECT_TRUE(xp::array_equal(bs[0], bs[1]));
      EXPECT_FALSE(xp::array_equal(Ws[0], Ws[1]));
      float of_squares = (layer->W.array() * layer->W.array()).mean().item<float>();
      EXPECT_NEAR(of_squares, 1. / 64, 0.003);  // of 64 inputs
    }
  });
  // Of the same numbers as the whole layer, in its order.
  testing::run_ranks(1, [](const Communicator& c) {
    auto drawn = [](auto make) {
      xp::random::seed(7);
      auto layer = make();
      std::vector<Array> flat;
      for (const ParameterRef& p : layer.params()) flat.push_back(p.array().ravel());
      return xp::concatenate(flat);
    };
    Initializer normal = initializers::Normal(1);
    Array linear = drawn([&] { return L::Linear(6, 4, {.initial_bias = normal}); });
    EXPECT_TRUE(xp::array_equal(
        drawn([&] { return L::ColumnParallelLinear(c, 6, 4, {.initial_bias = normal}); }), linear));
    EXPECT_TRUE(xp::array_equal(
        drawn([&] { return L::RowParallelLinear(c, 6, 4, {.initial_bias = normal}); }), linear));
    Array attention = drawn([&] { return L::MultiHeadAttention(8, 2, {.initial_bias = normal}); });
    EXPECT_TRUE(xp::array_equal(
        drawn([&] { return L::ParallelMultiHeadAttention(c, 8, 2, {.initial_bias = normal}); }),
        attention));
  });
}

// All that a call is given is of all heads.
TEST(ParallelAttention, OptionsAndOtherInputs) {
  L::MultiHeadAttention whole(8, 4, {.initial_bias = initializers::Normal(1)});
  Array q = numbers(80).reshape({2, 5, 8}), k = (0.7f * numbers(48)).reshape({2, 3, 8});
  Array scores = numbers(60).reshape({1, 4, 5, 3});
  for (int kind = 0; kind < 6; ++kind) {
    auto options = [&](const Variable& bias) {
      F::AttentionOptions given;
      if (kind == 1) given.mask = xp::greater(scores, -0.5f);
      if (kind == 2) given.mask = scores[{0, 0}];
      if (kind == 3) given.alibi_slopes = xp::array({0.5f, 0.25f, 0.125f, 0.0625f});
      if (kind >= 4) given.bias = bias;
      return given;
    };
    auto leaves = [&] {
      Array bias = kind == 4 ? scores : scores[{Slice(), Slice(0, 1)}];
      return Variables{Variable(q), Variable(k), Variable(bias)};
    };
    auto run = [&](const auto& layer, const Variables& x) {
      Variable y = layer(x[0], x[1], x[1], options(x[2]));
      F::sum(y * y).backward();
      return y.array();
    };
    Variables want = leaves();
    Array y = run(whole, want);
    testing::run_ranks(2, [&](const Communicator& c) {
      L::ParallelMultiHeadAttention part(c, whole);
      Variables got = leaves();
      EXPECT_TRUE(xp::allclose(run(part, got), y, 1e-4, 1e-5)) << kind;
      for (std::size_t i = 0; i < (kind >= 4 ? 3u : 2u); ++i) {
        EXPECT_TRUE(xp::allclose(got[i].grad(), want[i].grad(), 1e-4, 1e-5)) << kind << i;
      }
    });
  }
}

TEST(ParallelAttention, DropsWeightsAsTheWholeLayer) {
  L::MultiHeadAttention whole(8, 4, {.dropout = 0.5});
  Array x = numbers(40).reshape({1, 5, 8});
  xp::random::seed(7);
  Array want = whole(constant(x)).array();
  std::int64_t taken = xp::random::get_random_state().offset;
  EXPECT_GT(taken, 0);
  xp::random::seed(7);
  // The threads share a generator: each has it as the first one had it, one after the other.
  testing::run_ranks(2, [&](const Communicator& c) {
    L::ParallelMultiHeadAttention part(c, whole);
    c.barrier();
    if (c.rank() == 1) {
      auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (xp::random::get_random_state().offset != taken &&
             std::chrono::steady_clock::now() < end) {
        std::this_thread::yield();
      }
      EXPECT_EQ(xp::random::get_random_state().offset, taken);
      xp::random::seed(7);
    }
    EXPECT_TRUE(xp::allclose(part(constant(x)).array(), want, 1e-4, 1e-5));
  });
  EXPECT_EQ(xp::random::get_random_state().offset, taken);
  // And in a recorded step.
  testing::run_ranks(1, [&](const Communicator& c) {
    L::ParallelMultiHeadAttention part(c, whole);
    auto recorded = capture([&](const Variable& in) { return part(in); }, {.replay_lists = true});
    xp::random::seed(7);
    for (int k = 0; k < 4; ++k) (void)recorded(constant(x));
    EXPECT_EQ(xp::random::get_random_state().offset, 4 * taken);
  });
}

TEST(TensorParallelErrors, NameBothNumbers) {
  testing::run_ranks(2, [](const Communicator& c) {
    auto refused = [](auto make, const std::string& a, const std::string& b) {
      std::string text = testing::thrown<ValueError>(make);
      EXPECT_THAT(text, HasSubstr(a));
      EXPECT_THAT(text, HasSubstr(b));
    };
    refused([&] { L::ColumnParallelLinear(c, 4, 7); }, "7 outputs", "2 ranks");
    refused([&] { L::ColumnParallelLinear(c, 4, 6, {.gather_output = true, .groups = 3}); },
            "3 groups", "gathered");
    refused([&] { L::ColumnParallelLinear(c, 4, 10, {.groups = 3}); }, "10 outputs", "3 groups");
    refused([&] { L::ColumnParallelLinear(c, 4, 10, {.groups = 0}); }, "10 outputs", "0 groups");
    refused([&] { L::ColumnParallelLinear(c, -4, 8); }, "-4", "in size");
    refused([&] { L::RowParallelLinear(c, 5, 8); }, "5 inputs", "2 ranks");
    refused([&] { L::RowParallelLinear(c, 4, -8); }, "-8", "out size");
    refused([&] { L::ParallelMultiHeadAttention(c, 9, 3); }, "3 heads", "2 ranks");
    refused([&] { L::ParallelMultiHeadAttention(c, 9, 2); }, "2 heads", "9 units");
    refused([&] { L::ParallelMultiHeadAttention(c, L::MultiHeadAttention(6, 3)); }, "3 heads",
            "2 ranks");
    refused([&] { L::RowParallelLinear(c, L::Linear(std::int64_t{8})); }, "waits", "input size");
    refused([&] { L::ColumnParallelLinear(c, L::Linear(4, 3)); }, "3 outputs", "2 ranks");

    L::ParallelMultiHeadAttention attention(c, 8, 4);
    Variable x = constant(xp::ones({1, 5, 8}));
    EXPECT_THROW(attention(constant(xp::ones({5, 8}))), ShapeError);
    std::string text = testing::thrown<ShapeError>([&] {
      attention(x, {.mask = xp::ones({2, 5, 5}, bool_)});
    });
    EXPECT_THAT(text, HasSubstr("4 heads"));
    EXPECT_THROW(attention(x, {.alibi_slopes = xp::ones({2})}), ShapeError);
  });
}

}  // namespace
}  // namespace rensa

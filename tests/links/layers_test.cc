// Layers of networks beside what tests/links/recorded_links_test.cc holds them to: what they start
// from, what they refuse, what they draw.
#include <gtest/gtest.h>

#include <cmath>

#include "rensa/array/random_basics.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/capture.h"
#include "rensa/links/links.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using Values = std::vector<float>;

TEST(LstmLink, StartsFromItsInitializers) {
  for (Device device : testing::test_devices()) {
    // One that looks at the shape: of (units, units) and (units, in), not of all gates together.
    auto shape_of = [](const Array& out) { out.fill(out.shape(0) * 10 + out.shape(1)); };
    L::LSTM lstm(none, 2, {.lateral_init = shape_of, .upward_init = shape_of, .bias_init = 5});
    lstm.to(device);
    (void)lstm(xp::ones({1, 3}, float32, device));
    EXPECT_EQ(lstm.weights.upward.W.array().to_vector<float>(), Values(24, 23));
    EXPECT_EQ(lstm.weights.lateral.W.array().to_vector<float>(), Values(16, 22));
    EXPECT_EQ(lstm.weights.upward.b.array().to_vector<float>(), (Values{5, 5, 1, 5, 5, 5, 1, 5}));
  }
}

TEST(LstmLink, TakesNoMoreRowsThanBefore) {
  L::LSTM lstm(3, 2);
  (void)lstm(xp::ones({2, 3}));
  EXPECT_THROW(lstm(xp::ones({3, 3})), ShapeError);
  lstm.reset_state();
  EXPECT_NO_THROW(lstm(xp::ones({3, 3})));
}

TEST(LstmLink, GoesOnFromAStateThatItIsGiven) {
  L::LSTM a(3, 2), b(a);
  (void)a(xp::ones({2, 3}));
  b.set_state(a.c, a.h);
  Variable x = constant(xp::full({2, 3}, 0.5, float32));
  EXPECT_TRUE(xp::array_equal(a(x).array(), b(x).array()));
}

TEST(LstmLink, RefusesStatesOfOtherRowsThanEachOther) {
  Variable two(xp::ones({2, 2})), one(xp::ones({1, 2}));
  EXPECT_THROW(L::LSTM(3, 2).set_state(two, one), ShapeError);
  EXPECT_THROW(L::StatefulPeepholeLSTM(3, 2).set_state(one, two), ShapeError);
  EXPECT_THROW(L::StatefulZoneoutLSTM(3, 2).set_state(two, one), ShapeError);
}

// One row would broadcast.
TEST(RecurrentLinks, GoOnWithAsManyRows) {
  Variable two(xp::ones({2, 3})), one(xp::ones({1, 3}));
  auto refuses = [&](auto link) {
    link(one);
    std::string text = testing::thrown<ShapeError>([&] { link(two); });
    EXPECT_NE(text.find("reset_state"), std::string::npos) << text;
    link.reset_state();
    EXPECT_EQ(link(two).shape(0), 2);
  };
  refuses(L::StatefulGRU(3, 2));
  refuses(L::StatefulMGU(3, 2));
  refuses(L::StatefulPeepholeLSTM(3, 2));
  refuses(L::StatefulZoneoutLSTM(3, 2));
  Variable h(xp::ones({1, 2})), c(xp::ones({2, 2}));
  EXPECT_THROW(L::StatelessGRU(3, 2)(h, two), ShapeError);
  EXPECT_THROW(L::StatelessLSTM(3, 2)(c, h, two), ShapeError);
  EXPECT_THROW(L::NaryTreeLSTM(3, 2)({c, c}, {h, c}, two), ShapeError);
}

TEST(ZoneoutLstm, KeepsElementsWhileItIsTrained) {
  xp::random::seed(3);
  L::StatefulZoneoutLSTM lstm(4, 64, 0.5, 0.5);
  Array h = lstm(xp::ones({1, 4})).array();
  double kept = (h == 0).astype(float32).mean().item<double>();  // of the zeros at first
  EXPECT_NEAR(kept, 0.5, 0.25);
}

TEST(NStepLinks, RefuseWhatDoesNotFit) {
  L::NStepGRU gru(1, 3, 2, 0);
  auto ones = [](const Shape& shape) { return constant(xp::ones(shape)); };
  Variable none;
  EXPECT_NO_THROW(gru(none, {ones({2, 3}), ones({4, 3})}));
  EXPECT_THROW(gru(none, {}), ValueError);
  EXPECT_THROW(gru(none, {ones({2, 3}), ones({0, 3})}), ShapeError);
  EXPECT_THROW(gru(none, {ones({2, 3}), ones({2, 4})}), ShapeError);
  EXPECT_THROW(gru(none, {ones({2, 4})}), ShapeError);
  EXPECT_THROW(gru(ones({1, 3, 2}), {ones({2, 3})}), ShapeError);
  EXPECT_THROW(L::NStepGRU(0, 3, 2, 0), ValueError);
}

TEST(NStepLinks, OfManyBatchesOfOtherLengths) {
  for (Device device : testing::test_devices()) {
    xp::random::seed(6);
    L::NStepBiLSTM network(2, 3, 2, 0);
    network.to(device);
    for (std::int64_t n = 1; n < 80; ++n) {  // more than it remembers the order of
      Variables xs;
      for (std::int64_t length : {n % 5 + 1, n % 7 + 2, n % 3 + 1}) {
        xs.emplace_back(xp::random::uniform(-1, 1, {length, 3}, float32, device));
      }
      auto [hy, cy, ys] = network({}, {}, xs);
      for (std::size_t i = 0; i < xs.size(); ++i) {  // each as it is alone
        auto alone = network({}, {}, {xs[i]});
        EXPECT_TRUE(xp::allclose(ys[i].array(), alone.ys[0].array(), 1e-5, 1e-6)) << n;
        auto at = static_cast<std::int64_t>(i);
        Array end = hy.array()[{Slice(), Slice(at, at + 1)}];
        EXPECT_TRUE(xp::allclose(end, alone.hy.array(), 1e-5, 1e-6)) << n;
      }
    }
  }
}

TEST(NStepLinks, KeepTheOrderOfABatchThatComesAgain) {
  for (Device device : testing::test_devices()) {
    L::NStepGRU network(1, 3, 2, 0);
    network.to(device);
    no_backprop_mode off;
    auto call = [&](std::int64_t length) {
      Array x = xp::ones({length, 3}, float32, device), y = xp::ones({2, 3}, float32, device);
      return std::pair(constant(x), constant(y));
    };
    auto step = capture(
        [&](const Variable& x, const Variable& y) {
          return network({}, {x, y}).hy;
        },
        {.replay_lists = true});
    for (std::int64_t n = 0; n < 6; ++n) {
      auto [x, y] = call(300);
      (void)step(x, y);
      for (std::int64_t k = 0; k < 40; ++k) {
        auto [other, second] = call(1 + n * 40 + k);
        (void)network({}, {other, second});
      }
    }
    EXPECT_GT(step.stats().replays, 0) << step.stats().last_fallback;
  }
}

TEST(NStepLinks, CopiesHaveParametersOfTheirOwn) {
  L::NStepLSTM a(1, 3, 2, 0), b(a);
  b.params()[0].array().fill(7);
  EXPECT_NE(a.params()[0].array().to_vector<float>(), b.params()[0].array().to_vector<float>());
  EXPECT_EQ(a.params().size(), 16u);
  EXPECT_EQ(a.namedparams()[0].path, "/0/b0");
}

TEST(TreeLstmLinks, NeedSomethingDefined) {
  L::ChildSumTreeLSTM sum(3, 2);
  L::NaryTreeLSTM two(3, 2, 2);
  Variable u, h = constant(xp::ones({1, 2}));
  EXPECT_THROW(sum({u}, {u}, u), ValueError);
  EXPECT_THROW(sum({h}, {}, u), ValueError);
  EXPECT_THROW(two({h}, {h}, u), ValueError);
  EXPECT_THROW(L::NaryTreeLSTM(3, 2, 0), ValueError);
}

TEST(ScaleAndBias, TakeTheirParameterOnce) {
  Variable x = constant(xp::ones({2, 3})), y = constant(xp::ones({3}));
  EXPECT_THROW(L::Bias()(x), ValueError);
  EXPECT_THROW(L::Bias(1, Shape{3})(x, y), ValueError);
  EXPECT_THROW(L::Scale()(x), ValueError);
  EXPECT_THROW(L::Scale({.W_shape = Shape{3}})(x, y), ValueError);
  EXPECT_THROW(L::Scale({.bias_term = true}), ValueError);
}

TEST(NegativeSamplingLink, DrawsWordsByTheirCounts) {
  for (Device device : testing::test_devices()) {
    xp::random::seed(5);
    L::NegativeSampling loss(4, {16, 0, 1, 81}, 200, 0.5);
    loss.to(device);
    Variable x = constant(xp::ones({50, 4}, float32, device));
    Variable t = constant(xp::full({50}, 2, int32, device));
    // W is 0: each of the 201 terms is log 2.
    EXPECT_NEAR(loss(x, t).item<float>(), 50 * 201 * std::log(2), 1);
    EXPECT_EQ(loss(x, t, "no").shape(), Shape{50});
    // d/dW of a negative word is x / 2, of the right one -x / 2: how often each was drawn.
    loss.cleargrads();
    loss(x, t).backward();
    Values drawn = loss.W.grad()[{Slice(), 0}].to_vector<float>();
    EXPECT_NEAR(2 * drawn[0] / 10000, 4 / 14., 0.02);
    EXPECT_EQ(drawn[1], 0);
    EXPECT_NEAR((2 * drawn[2] + 50) / 10000, 1 / 14., 0.02);
    EXPECT_NEAR(2 * drawn[3] / 10000, 9 / 14., 0.02);
  }
  EXPECT_THROW(L::NegativeSampling(4, {1, -1}, 2), ValueError);
  EXPECT_THROW(L::NegativeSampling(4, {0, 0}, 2), ValueError);
}

TEST(HierarchicalSoftmax, RefusesTreesAndInputsThatDoNotFit) {
  auto one_word = L::BinaryHierarchicalSoftmax::create_huffman_tree({{0, 3}});
  EXPECT_THROW(L::BinaryHierarchicalSoftmax(3, one_word), ValueError);
  using L::WordTree;
  EXPECT_THROW(L::BinaryHierarchicalSoftmax(3, WordTree(1, 1)), ValueError);
  EXPECT_THROW(L::BinaryHierarchicalSoftmax(3, WordTree(1, -2)), ValueError);
  EXPECT_THROW(L::BinaryHierarchicalSoftmax::create_huffman_tree({}), ValueError);
  for (Device device : testing::test_devices()) {
    L::BinaryHierarchicalSoftmax loss(3, WordTree(0, 2));
    loss.to(device);
    Variable x = constant(xp::ones({1, 3}, float32, device));
    auto of = [&](int word) { return loss(x, constant(xp::full({1}, word, int32, device))); };
    EXPECT_EQ(of(1).item<float>(), 0);  // not in the tree
    EXPECT_GT(of(2).item<float>(), 0);
    EXPECT_THROW(of(3).item<float>(), IndexError);
    EXPECT_THROW(of(-1).item<float>(), IndexError);
    EXPECT_THROW(loss(x, constant(xp::zeros({2}, int32, device))), ShapeError);
  }
}

TEST(MultiHeadAttention, RefusesWhatDoesNotFit) {
  EXPECT_THROW(L::MultiHeadAttention(6, 4), ValueError);
  L::MultiHeadAttention attention(6, 2);
  auto ones = [](const Shape& shape) { return constant(xp::ones(shape)); };
  EXPECT_NO_THROW(attention(ones({2, 3, 6})));
  EXPECT_THROW(attention(ones({3, 6})), ShapeError);
  EXPECT_THROW(attention(ones({2, 3, 5})), ShapeError);
  EXPECT_THROW(attention(ones({2, 3, 6}), ones({2, 4, 6}), ones({2, 5, 6})), ShapeError);
}

TEST(MultiHeadAttention, PaddedKeysByTheirLengths) {
  for (Device device : testing::test_devices()) {
    L::MultiHeadAttention attention(6, 2);
    attention.to(device);
    Array x = xp::random::uniform(-1, 1, {2, 5, 6}, float32, device);
    Array lengths = xp::array({5, 2}, device);
    Array mask = xp::arange(5, int64, device) < lengths.reshape({2, 1, 1, 1});
    Array want = attention(x, {.mask = mask}).array();
    EXPECT_TRUE(xp::allclose(attention(x, {.key_lengths = lengths}).array(), want, 1e-5, 1e-6));
    EXPECT_FALSE(xp::allclose(attention(x).array(), want, 1e-5, 1e-6));
  }
}

TEST(Flatten, JoinsAxes) {
  Variable x = constant(xp::ones({2, 3, 4}));
  EXPECT_EQ(L::Flatten()(x).shape(), (Shape{2, 12}));
  EXPECT_EQ(L::Flatten(0)(x).shape(), (Shape{24}));
  EXPECT_EQ(L::Flatten(2)(x).shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(L::Flatten()(constant(xp::ones({0, 3, 4}))).shape(), (Shape{0, 12}));
  EXPECT_THROW(L::Flatten(4)(x), ShapeError);
}

TEST(DropoutLink, DropsWhileItIsTrained) {
  Variable x = constant(xp::ones({100}));
  L::Dropout dropout(0.25);
  EXPECT_FALSE(xp::array_equal(dropout(x).array(), x.array()));
  L::SimplifiedDropconnect dropconnect(100, 3);
  Variable row = F::reshape(x, {1, 100});
  EXPECT_FALSE(xp::array_equal(dropconnect(row).array(), dropconnect(row).array()));
  UsingConfig<bool> off(&Config::train, false);
  EXPECT_TRUE(xp::array_equal(dropout(x).array(), x.array()));
  EXPECT_TRUE(xp::array_equal(dropconnect(row).array(), dropconnect(row).array()));
}

}  // namespace
}  // namespace rensa

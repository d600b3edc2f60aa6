// Cells of recurrent networks: values, gradients of first and second order, launches.
#include "rensa/functions/rnn.h"

#include <gtest/gtest.h>

#include "rensa/array/random_basics.h"
#include "rensa/autograd/backward.h"
#include "rensa/autograd/gradient_check.h"
#include "rensa/core/error.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/capture.h"
#include "rensa/graph/recording.h"
#include "tests/testing.h"

namespace rensa {
namespace {

// By functions of one gate each.
std::pair<Variable, Variable> reference(const Variable& c_prev, const Variable& x) {
  auto gate = [&](std::int64_t k) { return F::get_item(x, {Slice(), Slice(k, none, 4)}); };
  Variable c = F::tanh(gate(0)) * F::sigmoid(gate(1)) + F::sigmoid(gate(2)) * c_prev;
  return {c, F::sigmoid(gate(3)) * F::tanh(c)};
}

Variables lstm(const Variables& v) {
  auto [c, h] = F::lstm(v[0], v[1]);
  return {c, h};
}

class LstmTest : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { xp::random::seed(7); }
  Array numbers(const Shape& shape, Dtype dtype = float64) const {
    return xp::random::uniform(-2, 2, shape, float64, GetParam()).astype(dtype);
  }
};

TEST_P(LstmTest, ValuesAndGradientsOfTheReference) {
  const std::pair<Dtype, double> tolerances[] = {
      {float64, 1e-13}, {float32, 1e-5}, {float16, 1e-2}};
  for (auto [dtype, tolerance] : tolerances) {
    Variable c(numbers({5, 6}, dtype)), x(numbers({5, 24}, dtype));
    Variable want_c(c.array().astype(float64)), want_x(x.array().astype(float64));
    Array gc = numbers({5, 6}, dtype), gh = numbers({5, 6}, dtype);
    auto [next, h] = F::lstm(c, x);
    auto [want_next, want_h] = reference(want_c, want_x);
    next.set_grad(gc), h.set_grad(gh);
    backward({next, h});
    want_next.set_grad(gc.astype(float64)), want_h.set_grad(gh.astype(float64));
    backward({want_next, want_h});
    auto check = [&](const Array& got, const Array& want) {
      EXPECT_EQ(got.dtype(), dtype);
      EXPECT_TRUE(xp::allclose(got.astype(float64), want, tolerance, tolerance));
    };
    check(next.array(), want_next.array());
    check(h.array(), want_h.array());
    check(c.grad(), want_c.grad());
    check(x.grad(), want_x.grad());
  }
}

TEST_P(LstmTest, FirstAndSecondDerivatives) {
  for (auto [c, x] : {std::pair<Shape, Shape>{{3, 2}, {3, 8}}, {{2, 3, 2}, {2, 12, 2}}}) {
    Arrays inputs{numbers(c), numbers(x)}, weights{numbers(c), numbers(c)};
    EXPECT_NO_THROW(gradient_check::check_backward(lstm, inputs, weights));
    EXPECT_NO_THROW(gradient_check::check_double_backward(lstm, inputs, weights));
    auto only_h = [](const Variables& v) { return Variables{lstm(v)[1]}; };
    auto only_c = [](const Variables& v) { return Variables{lstm(v)[0]}; };
    EXPECT_NO_THROW(gradient_check::check_double_backward(only_h, inputs, {weights[0]}));
    EXPECT_NO_THROW(gradient_check::check_double_backward(only_c, inputs, {weights[0]}));
  }
}

TEST_P(LstmTest, RowsThatHaveEndedStayAsTheyAre) {
  Variable c(numbers({4, 2})), x(numbers({3, 8}));
  auto [next, h] = F::lstm(c, x);
  EXPECT_EQ(next.shape(), Shape({4, 2}));
  EXPECT_EQ(h.shape(), Shape({3, 2}));
  EXPECT_EQ(next.array()[3].to_vector<double>(), c.array()[3].to_vector<double>());
  EXPECT_NO_THROW(gradient_check::check_backward(lstm, {c.array(), x.array()},
                                                 {numbers({4, 2}), numbers({3, 2})}));
}

TEST_P(LstmTest, OneLaunchForwardAndOneBackward) {
  Variable c(numbers({5, 6}, float32)), x(numbers({5, 24}, float32));
  Array gh = numbers({5, 6}, float32);
  Recording recording;
  {
    RecorderScope scope(&recording);
    Variable h = F::lstm(c, x).second;
    h.set_grad(gh);
    h.backward();
  }
  ASSERT_EQ(recording.operations.size(), 2u);
  EXPECT_STREQ(recording.operations[0]->name(), "lstm");
  EXPECT_STREQ(recording.operations[1]->name(), "lstm_grad");
}

TEST_P(LstmTest, IsReplayedBitForBit) {
  Array c = numbers({5, 6}, float32);
  auto gradient = [&](const Variable& x) {
    auto [next, h] = F::lstm(constant(c), x);
    return grad({F::sum(next * h)}, {x})[0];
  };
  auto step = capture([&](const Variable& x) { return gradient(Variable(x.array())); },
                      {.replay_lists = true});
  for (int i = 0; i < 6; ++i) {
    Variable x(numbers({5, 24}, float32));
    EXPECT_EQ(step(x).array().to_vector<float>(), gradient(x).array().to_vector<float>()) << i;
  }
  EXPECT_GT(step.stats().replays, 1) << step.stats().last_fallback;
}

TEST_P(LstmTest, ShapesThatDoNotFit) {
  Device device = GetParam();
  Variable c(xp::zeros({3, 2}, float32, device));
  for (Shape shape : {Shape{4, 8}, Shape{3, 6}, Shape{3, 8, 1}, Shape{8}}) {
    EXPECT_THROW(F::lstm(c, xp::zeros(shape, float32, device)), ShapeError) << shape.str();
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, LstmTest, ::testing::ValuesIn(testing::test_devices()));

// --- over sequences ---

F::WeightLists weights(int layers, int each, std::int64_t in, std::int64_t units, bool biases) {
  F::WeightLists lists;
  for (int i = 0; i < layers; ++i) {
    Variables& list = lists.emplace_back();
    for (int j = 0; j < each; ++j) {
      std::int64_t columns = i == 0 && j < each / 2 ? in : units;
      list.push_back(constant(biases ? xp::ones({units}) : xp::ones({units, columns})));
    }
  }
  return lists;
}

Variables times(const Shape& batches, std::int64_t in) {
  Variables xs;
  for (std::int64_t n : batches) xs.push_back(constant(xp::ones({n, in})));
  return xs;
}

TEST(NStep, RefusesWhatDoesNotFit) {
  F::WeightLists ws = weights(1, 6, 3, 2, false), bs = weights(1, 6, 3, 2, true);
  Variable hx = constant(xp::ones({1, 3, 2}));
  auto run = [&](const Shape& batches) { F::n_step_gru(1, 0, hx, ws, bs, times(batches, 3)); };
  EXPECT_NO_THROW(run({3, 2, 2}));
  EXPECT_THROW(run({2, 3}), ShapeError);     // not sorted
  EXPECT_THROW(run({4, 3}), ShapeError);     // more than hx
  EXPECT_THROW(run({2, 1, 0}), ShapeError);  // nobody reaches the last time
  EXPECT_THROW(run({}), ValueError);
  Variables xs = times({3, 2}, 3);
  EXPECT_THROW(F::n_step_gru(2, 0, hx, ws, bs, xs), ValueError);
  EXPECT_THROW(F::n_step_bigru(1, 0, hx, ws, bs, xs), ValueError);
  EXPECT_THROW(F::n_step_lstm(1, 0, hx, hx, ws, bs, xs), ValueError);
  EXPECT_THROW(F::n_step_gru(1, 0, constant(xp::ones({2, 3, 2})), ws, bs, xs), ShapeError);
  EXPECT_THROW(F::n_step_gru(1, 0, constant(xp::ones({1, 3, 4})), ws, bs, xs), ShapeError);
  EXPECT_THROW(F::n_step_gru(1, 0, hx, ws, bs, times({3, 2}, 4)), ShapeError);
  EXPECT_THROW(F::n_step_gru(1, 0, hx, ws, bs, {xs[0], constant(xp::ones({2, 4}))}), ShapeError);
  EXPECT_THROW(
      F::n_step_rnn(1, 0, hx, weights(1, 2, 3, 2, false), weights(1, 2, 3, 2, true), xs, "elu"),
      ValueError);
}

TEST(NStep, DropsBetweenLayers) {
  Variable hx = constant(xp::zeros({2, 1, 64}));
  auto run = [&](double ratio) {
    return F::n_step_rnn(2, ratio, hx, weights(2, 2, 64, 64, false), weights(2, 2, 64, 64, true),
                         times({1}, 64), "relu")
        .ys[0]
        .array();
  };
  Array whole = run(0);
  EXPECT_FALSE(xp::array_equal(run(0.3), whole));  // no number of those kept comes to all
  UsingConfig<bool> off(&Config::train, false);
  EXPECT_TRUE(xp::array_equal(run(0.3), whole));
}

TEST(TreeLstm, ShapesThatDoNotFit) {
  auto ones = [](const Shape& shape) { return constant(xp::ones(shape)); };
  EXPECT_THROW(F::tree_lstm({}, ones({3, 6})), ValueError);
  EXPECT_THROW(F::tree_lstm({ones({3, 2})}, ones({3, 6})), ShapeError);
  EXPECT_THROW(F::tree_lstm({ones({3, 2}), ones({2, 2})}, ones({3, 10})), ShapeError);
  EXPECT_THROW(F::slstm(ones({3, 2}), ones({3, 3}), ones({3, 8}), ones({3, 12})), ShapeError);
  EXPECT_THROW(F::slstm(ones({3, 2}), ones({3, 2}), ones({2, 8}), ones({2, 8})), ShapeError);
}

}  // namespace
}  // namespace rensa

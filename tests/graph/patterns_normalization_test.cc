// The patterns around normalizations: the rewritten list against the recorded one, bit for bit.
#include <gtest/gtest.h>

#include <cmath>

#include "rensa/array/math.h"
#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/autograd/backward.h"
#include "rensa/autograd/function_node.h"
#include "rensa/functions/functions.h"
#include "rensa/functions/operations/normalization/normalization.h"
#include "rensa/functions/operations/row_normalization/row_normalization.h"
#include "rensa/links/links.h"
#include "rensa/operations/elementwise/elementwise.h"
#include "tests/graph/rewritten.h"

namespace rensa {
namespace {

using operations::Normalize;
using testing::Case;
using testing::Rewritten;

int count_relu(const Rewritten& list) {
  return list.count<Normalize>([](const Normalize& op) { return op.relu && !op.gy.present(); });
}

Array normalized(const Array& x, const Array& gamma, const Array& beta) {
  return F::batch_normalization(constant(x), constant(gamma), constant(beta)).array();
}
Array relu(const Array& x) { return xp::elementwise(ufunc::relu, {x}); }

TEST(JoinNormalizeRelu, ReluIsPartOfThePass) {
  no_backprop_mode off;
  for (const Case& c : testing::cases()) {
    SCOPED_TRACE(c.describe());
    Array x = c.numbers(), gamma = c.weights(1), beta = c.weights(0);
    Rewritten list([&] { return Arrays{relu(normalized(x, gamma, beta))}; });
    EXPECT_EQ(list.recorded, 3u);
    EXPECT_EQ(list.left(), 2u);
    EXPECT_EQ(count_relu(list), 1);
  }
}

TEST(JoinNormalizeRelu, TheResidualIsAddedInThePass) {
  no_backprop_mode off;
  for (const Case& c : testing::cases()) {
    SCOPED_TRACE(c.describe());
    Array x = c.numbers(), r = c.numbers(), gamma = c.weights(1, c.dtype),
          beta = c.weights(0, c.dtype);
    for (bool behind : {false, true}) {
      Rewritten list([&] {
        Array h = normalized(x, gamma, beta);
        return Arrays{relu(behind ? r + h : h + r)};
      });
      EXPECT_EQ(list.recorded, 4u);
      EXPECT_EQ(list.left(), 2u);
      EXPECT_EQ(count_relu(list), 1);
    }
  }
}

TEST(JoinNormalizeRelu, OfOtherNormalizations) {
  no_backprop_mode off;
  for (const Case& c : testing::cases()) {
    SCOPED_TRACE(c.describe());
    Array x = c.numbers(), r = c.numbers(), gamma = c.weights(1, c.dtype),
          beta = c.weights(0, c.dtype);
    Array mean = c.weights(0, c.dtype), var = xp::absolute(c.weights(2, c.dtype));
    Rewritten list([&] {
      Variable fixed = F::fixed_batch_normalization(constant(x), constant(gamma), constant(beta),
                                                    constant(mean), constant(var));
      Variable groups =
          F::group_normalization(constant(x), c.shape[1], constant(gamma), constant(beta));
      return Arrays{F::relu(fixed).array(), F::relu(constant(r) + groups).array()};
    });
    EXPECT_EQ(count_relu(list), 2);
  }
}

// A block's residual that is normalized too: one of both stays.
TEST(JoinNormalizeRelu, OfTwoThatAreAddedOneTakesTheOther) {
  no_backprop_mode off;
  for (const Case& c : testing::cases()) {
    SCOPED_TRACE(c.describe());
    Array x = c.numbers(), r = c.numbers(), gamma = c.weights(1), beta = c.weights(0);
    Rewritten list([&] {
      Array h = normalized(x, gamma, beta);
      return Arrays{relu(h + normalized(r, beta, gamma))};
    });
    EXPECT_EQ(list.recorded, 6u);
    EXPECT_EQ(list.left(), 4u);
    EXPECT_EQ(count_relu(list), 1);
  }
}

TEST(JoinNormalizeRelu, NotANumberStays) {
  no_backprop_mode off;
  for (const Case& c : testing::cases()) {
    SCOPED_TRACE(c.describe());
    Array x = c.numbers(), gamma = c.weights(1), beta = c.weights(0), y;
    x[{0, 1}].fill(NAN);
    Rewritten list([&] { return Arrays{y = relu(normalized(x, gamma, beta))}; });
    EXPECT_EQ(count_relu(list), 1);
    EXPECT_TRUE(xp::isnan(y[{0, 1}]).all().item<bool>());
    EXPECT_FALSE(xp::isnan(y[{0, 0}]).any().item<bool>());
  }
}

TEST(JoinNormalizeRelu, WhatOthersReadIsWritten) {
  no_backprop_mode off;
  for (Device device : testing::test_devices()) {
    Case c = {device, float32, {2, 8, 3, 3}, true};
    Array x = c.numbers(), r = c.numbers(), gamma = c.weights(1), beta = c.weights(0);
    Rewritten normalized_twice_read([&] {
      Array h = normalized(x, gamma, beta);
      return Arrays{relu(h), h.sum(0)};
    });
    EXPECT_EQ(count_relu(normalized_twice_read), 0);
    Rewritten sum_twice_read([&] {
      Array s = normalized(x, gamma, beta) + r;
      return Arrays{relu(s), s.sum(0)};
    });
    EXPECT_EQ(count_relu(sum_twice_read), 0);
    Rewritten added_to_itself([&] {
      Array h = normalized(x, gamma, beta);
      return Arrays{relu(h + h)};
    });
    EXPECT_EQ(count_relu(added_to_itself), 0);
    Array kept;
    Rewritten held([&] {
      kept = normalized(x, gamma, beta);
      return Arrays{relu(kept), kept};
    });
    EXPECT_EQ(count_relu(held), 0);
  }
}

TEST(JoinNormalizeRelu, NothingIsReadAfterItHasChanged) {
  no_backprop_mode off;
  for (Device device : testing::test_devices()) {
    Case c = {device, float32, {2, 8, 3, 3}, false};
    Array x = c.numbers(), r = c.numbers(), gamma = c.weights(1), beta = c.weights(0);
    auto run = [&](bool changes_residual, bool changes_beta) {
      return count_relu(Rewritten([&] {
        Array residual = r * 1.5f, offset = beta * 1.5f;
        Array s = normalized(x, gamma, offset) + residual;
        if (changes_residual) residual *= 2.f;
        if (changes_beta) offset *= 2.f;
        return Arrays{relu(s), residual, offset};
      }));
    };
    EXPECT_EQ(run(false, false), 1);
    EXPECT_EQ(run(true, false), 0);
    EXPECT_EQ(run(false, true), 0);
  }
}

// Broadcast, and of another order in memory.
TEST(JoinNormalizeRelu, ResidualsThatLieOtherwiseStayApart) {
  no_backprop_mode off;
  for (Device device : testing::test_devices()) {
    Case c = {device, float32, {2, 8, 3, 3}, true};
    Array x = c.numbers(), r = c.numbers().ascontiguous(), gamma = c.weights(1),
          beta = c.weights(0);
    Rewritten turned([&] { return Arrays{relu(normalized(x, gamma, beta) + r)}; });
    EXPECT_EQ(count_relu(turned), 0);
    Array row = r[{0, 0}].copy();
    Rewritten broadcast([&] { return Arrays{relu(normalized(x, gamma, beta) + row)}; });
    EXPECT_EQ(count_relu(broadcast), 0);
    Rewritten wider([&] { return Arrays{relu(normalized(x, gamma, beta) + r.astype(float64))}; });
    EXPECT_EQ(count_relu(wider), 0);
  }
}

// --- gradients ---

using operations::NormalizationSums;

int count_sums_with_relu(const Rewritten& list) {
  return list.count<NormalizationSums>([](const NormalizationSums& op) { return op.relu; });
}
int count_sums_that_write(const Rewritten& list, bool with_addend) {
  return list.count<NormalizationSums>([&](const NormalizationSums& op) {
    return op.gz.present() && op.addend.present() == with_addend;
  });
}
int count_gradients_with_relu(const Rewritten& list) {
  return list.count<Normalize>([](const Normalize& op) { return op.relu && op.gy.present(); });
}

/// y, and the gradients of all of x by gy.
Arrays with_gradients(const Variable& y, const Variables& x, const Array& gy) {
  Arrays results{y.array()};
  for (const Variable& g : grad({y}, x, {constant(gy)})) results.push_back(g.array());
  return results;
}

TEST(JoinNormalizeReluGrad, ReluIsPartOfBothPasses) {
  for (const Case& c : testing::cases()) {
    SCOPED_TRACE(c.describe());
    Array gy = c.numbers();
    for (Dtype of : {c.dtype, c.dtype == float64 ? float64 : float32}) {
      Variables v{Variable(c.numbers()), Variable(c.weights(1, of)), Variable(c.weights(0, of))};
      Rewritten list(
          [&] { return with_gradients(F::relu(F::batch_normalization(v[0], v[1], v[2])), v, gy); });
      EXPECT_EQ(list.count_elementwise(ufunc::relu_grad), 0);
      EXPECT_EQ(count_sums_with_relu(list), 1);
      EXPECT_EQ(count_gradients_with_relu(list), 1);
    }
  }
}

TEST(JoinNormalizeReluGrad, OfParametersAlone) {
  for (Device device : testing::test_devices()) {
    Case c = {device, bfloat16, {6, 16, 3, 3}, true};
    Array x = c.numbers(), gy = c.numbers();
    Variables v{Variable(c.weights(1)), Variable(c.weights(0))};
    Rewritten list([&] {
      return with_gradients(F::relu(F::batch_normalization(constant(x), v[0], v[1])), v, gy);
    });
    EXPECT_EQ(list.count_elementwise(ufunc::relu_grad), 0);
    EXPECT_EQ(count_sums_with_relu(list), 1);
  }
}

// Places where what relu gets is 0, by rounding too, and no number.
TEST(JoinNormalizeReluGrad, AtZeroAndOfNoNumber) {
  for (const Case& c : testing::cases()) {
    SCOPED_TRACE(c.describe());
    Array x = c.numbers(), beta = c.weights(0), gy = c.numbers();
    Array gamma = beta * 1e-30f;
    x[{0, 2}].fill(NAN);
    beta.fill(0);
    if (c.dtype == float16) gamma = gamma * 1e22f;  // some results round to 0
    Variables v{Variable(x), Variable(gamma), Variable(beta)};
    Rewritten list(
        [&] { return with_gradients(F::relu(F::batch_normalization(v[0], v[1], v[2])), v, gy); });
    EXPECT_EQ(count_sums_with_relu(list), 1);
  }
}

// Steps of one batch normalization and relu, with something in between.
class Steps {
 public:
  explicit Steps(Device device) : case_{device, float32, {6, 8, 5}, false} {
    x = case_.numbers(), gy = case_.numbers(), gamma = case_.weights(1), beta = case_.weights(0);
  }

  Array forward() {
    y = xp::empty_like(x);
    mean = xp::empty({8}, float32, x.device()), inv_std = xp::empty_like(mean);
    operations::Moments moments("moments");
    moments.axes = 0b101;
    moments.x = x.operand();
    moments.mean = mean.reshape({1, 8, 1}).operand();
    moments.inv_std = inv_std.reshape({1, 8, 1}).operand();
    launch(moments);
    Array h = xp::empty_like(x);
    Normalize op = normalize(h);
    op.beta = beta.operand();
    launch(op);
    return y = relu(h);
  }
  Array relu_grad() const { return xp::elementwise(ufunc::relu_grad, {gy, y}); }
  Arrays backward(const Array& gz) {
    Array sum_gy = xp::empty_like(mean), sum_gyx = xp::empty_like(mean), gx = xp::empty_like(x);
    NormalizationSums sums("sums");
    sums.axes = 0b101;
    sums.x = x.operand();
    sums.gy = gz.operand();
    sums.mean = mean.operand();
    sums.inv_std = inv_std.operand();
    sums.sum_gy = sum_gy.reshape({1, 8, 1}).operand();
    sums.sum_gyx = sum_gyx.reshape({1, 8, 1}).operand();
    launch(sums);
    Normalize op = normalize(gx);
    op.count = 30;
    op.gy = gz.operand();
    op.sum_gy = sum_gy.operand();
    op.sum_gyx = sum_gyx.operand();
    launch(op);
    return {y, sum_gy, sum_gyx, gx};
  }

  Array x, gy, gamma, beta, y, mean, inv_std;

 private:
  Normalize normalize(const Array& out) const {
    Normalize op("normalize");
    op.samples = 6, op.channels = 8, op.inner = 5;
    op.x = x.operand();
    op.mean = mean.operand();
    op.inv_std = inv_std.operand();
    op.gamma = gamma.operand();
    op.out = out.operand();
    return op;
  }
  Case case_;
};

TEST(JoinNormalizeReluGrad, NothingIsReadAfterItHasChanged) {
  for (Device device : testing::test_devices()) {
    for (int changed = 0; changed < 4; ++changed) {
      Steps steps(device);
      Array x = steps.x, gy = steps.gy, beta = steps.beta;
      Rewritten list([&] {
        steps.x = x * 2.f, steps.gy = gy * 2.f, steps.beta = beta * 2.f;
        steps.forward();
        if (changed == 1) steps.beta *= 3.f;
        Array gz = steps.relu_grad();
        if (changed == 2) steps.gy *= 3.f;
        if (changed == 3) steps.x *= 3.f;
        return steps.backward(gz);
      });
      EXPECT_EQ(count_sums_with_relu(list), changed == 0) << changed;
    }
  }
}

TEST(JoinNormalizeReluGrad, WhatOthersReadIsWritten) {
  for (Device device : testing::test_devices()) {
    Steps steps(device);
    Rewritten list([&] {
      steps.forward();
      Array gz = steps.relu_grad();
      Arrays results = steps.backward(gz);
      results.push_back(gz.sum(0));
      return results;
    });
    EXPECT_EQ(count_sums_with_relu(list), 0);
    EXPECT_EQ(count_gradients_with_relu(list), 0);
    Rewritten of_other_statistics([&] {
      steps.forward();
      Array gz = steps.relu_grad();
      steps.mean = steps.mean * 2.f;
      return steps.backward(gz);
    });
    EXPECT_EQ(count_sums_with_relu(of_other_statistics), 0);
  }
}

// Two blocks: of the second, gy is given; of the first it is the sum of the residual's gradient and
// the convolution's.
TEST(JoinReluGradSums, TheSumsWriteWhatTheResidualGets) {
  for (const Case& c : testing::cases()) {
    if (c.shape.ndim() != 4) continue;
    SCOPED_TRACE(c.describe());
    auto weights = [&](double mean) { return Variable(c.weights(mean, c.dtype)); };
    Array gy = c.numbers();
    Variable W(xp::random::normal(0, 0.3, {c.shape[1], c.shape[1], 1, 1}, float64, c.device)
                   .astype(c.dtype));
    Variables v{Variable(c.numbers()),
                Variable(c.numbers()),
                weights(1),
                weights(0),
                W,
                weights(1),
                weights(0)};
    Rewritten list([&] {
      Variable first = F::relu(F::batch_normalization(v[0], v[2], v[3]) + v[1]);
      Variable h = F::convolution_2d(first, v[4]);
      Variable second = F::relu(first + F::batch_normalization(h, v[5], v[6]));
      return with_gradients(second, v, gy);
    });
    EXPECT_EQ(count_relu(list), 2);
    bool last = c.channels_last || c.shape[2] == 1;  // of one place, both are one layout
    EXPECT_EQ(count_sums_that_write(list, false), last ? 1 : 0);
    EXPECT_EQ(count_sums_that_write(list, true), last ? 1 : 0);
    if (last) {
      EXPECT_EQ(list.count_elementwise(ufunc::relu_grad), 0);
    }
  }
}

// A block whose residual is normalized too: four passes read what the first of them writes.
TEST(JoinReluGradSums, OfTwoNormalizations) {
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float32, bfloat16}) {
      Case c = {device, dtype, {4, 12, 6, 6}, true};
      Array gy = c.numbers();
      Variables v{Variable(c.numbers()), Variable(c.numbers()), Variable(c.weights(1)),
                  Variable(c.weights(0))};
      Rewritten list([&] {
        return with_gradients(F::relu(F::batch_normalization(v[0], v[2], v[3]) +
                                      F::batch_normalization(v[1], v[3], v[2])),
                              v, gy);
      });
      EXPECT_EQ(count_relu(list), 1);
      EXPECT_EQ(count_sums_that_write(list, false), 1);
      EXPECT_EQ(list.count_elementwise(ufunc::relu_grad), 0);
    }
  }
}

// What a GPU makes one kernel of with relu's gradient is not taken from it.
TEST(JoinReluGradSums, ChainsStay) {
  for (Device device : testing::test_devices()) {
    Case c = {device, float32, {4, 12, 6, 6}, true};
    Array gy = c.numbers(), r = c.numbers();
    Variables v{Variable(c.numbers()), Variable(r), Variable(c.weights(1)), Variable(c.weights(0))};
    Rewritten list([&] {
      Variable y = F::relu(F::batch_normalization(v[0], v[2], v[3]) + v[1]);
      return with_gradients(F::exp(y) + F::tanh(y), v, gy);
    });
    EXPECT_EQ(count_sums_that_write(list, false) + count_sums_that_write(list, true), 0);
  }
}

TEST(JoinReluGradSums, NothingIsReadAfterItHasChanged) {
  for (Device device : testing::test_devices()) {
    Case c = {device, float32, {4, 12, 9, 1}, true};
    for (bool changes : {false, true}) {
      Array x = c.numbers(), g = c.numbers(), y = c.numbers(), statistic = c.weights(2);
      Rewritten list([&] {
        Array gy = g * 2.f, gz = xp::elementwise(ufunc::relu_grad, {gy, y});
        if (changes) gy *= 2.f;
        auto folded = [](const Array& a) { return a.reshape({4, 12, 9}); };
        Array sum_gy = xp::empty({1, 12, 1}, float32, device), sum_gyx = xp::empty_like(sum_gy);
        NormalizationSums sums("sums");
        Array x3 = folded(x), gz3 = folded(gz);
        sums.axes = 0b101;
        sums.x = x3.operand();
        sums.gy = gz3.operand();
        sums.mean = sums.inv_std = statistic.operand();
        sums.sum_gy = sum_gy.operand();
        sums.sum_gyx = sum_gyx.operand();
        launch(sums);
        return Arrays{sum_gy, sum_gyx, gz, gy};
      });
      EXPECT_EQ(count_sums_that_write(list, false), !changes);
    }
  }
}

// Of a whole network no relu and no gradient of one is left.
TEST(JoinReluGradSums, OfAResidualNetwork) {
  for (Device device : testing::test_devices()) {
    for (DefaultDtype dtype : {DefaultDtype(float32), mixed_bf16}) {
      UsingConfig of_dtype(&Config::dtype, dtype);
      L::ResNetOptions options = L::ResNetOptions::torchvision();
      options.width = 8, options.classes = 10;
      L::ResNetLayers net({2, 1, 1, 1}, true, options);
      net.to(device);
      L::channels_last(net);
      Array x = F::channels_last(xp::random::normal(0, 1, {2, 3, 40, 40}, float32, device))
                    .astype(get_dtype(), {.copy = false, .order = "K"});
      Array t = xp::arange(2, int32, device);
      net(constant(x));  // sizes that are not known yet
      Rewritten list([&] {
        Variable loss = F::softmax_cross_entropy(net(constant(x)), constant(t));
        net.cleargrads();
        loss.backward();
        Arrays results{loss.array()};
        for (const ParameterRef& p : net.params()) results.push_back(p.grad());
        return results;
      });
      EXPECT_EQ(count_relu(list), 1 + 3 * 5);
      EXPECT_EQ(list.count_elementwise(ufunc::relu), 0);
      EXPECT_EQ(list.count_elementwise(ufunc::relu_grad), 0);
      EXPECT_EQ(count_sums_with_relu(list), 1 + 2 * 5);
      EXPECT_EQ(count_sums_that_write(list, true), 4);
      EXPECT_EQ(count_sums_that_write(list, false), 1);
    }
  }
}

// --- rows ---

int count_rows_with_sum(const Rewritten& list) {
  using operations::RowNormalization;
  return list.count<RowNormalization>(
      [](const RowNormalization& op) { return op.addend.present() && op.sum.present(); });
}
int count_rows_grads_with_sum(const Rewritten& list) {
  using operations::RowNormalizationGrad;
  return list.count<RowNormalizationGrad>(
      [](const RowNormalizationGrad& op) { return op.addend.present(); });
}

/// Rows of a warp, short and long, and of a block, with a rest and without, of two passes on a GPU,
/// and one row.
std::vector<Case> cases_of_rows() {
  std::vector<Case> all;
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float32, float16, bfloat16, float64}) {
      for (Shape shape : {Shape{5, 24}, Shape{1, 7}, Shape{33, 768}, Shape{4, 1001}, Shape{3, 2051},
                          Shape{2, 9000}}) {
        all.push_back({device, dtype, shape, false});
      }
    }
  }
  return all;
}

// A block as of a Transformer: the sum is normalized, and goes on beside it.
TEST(JoinResidualRows, BothWaysInOnePass) {
  for (const Case& c : cases_of_rows()) {
    SCOPED_TRACE(c.describe());
    for (bool centered : {true, false}) {
      Variables v{Variable(c.numbers()), Variable(c.numbers()), Variable(c.weights(1, c.dtype))};
      if (centered) v.emplace_back(c.weights(0, c.dtype));
      Array gy = c.numbers();
      Rewritten list([&] {
        Variable sum = v[0] + v[1];
        Variable y = centered ? F::layer_normalization(sum, v[2], v[3]) : F::rms_norm(sum, v[2]);
        Variable used = F::matmul(y, xp::ones({c.shape[1], 1}, c.dtype, c.device));
        return with_gradients(used + sum, v, gy);
      });
      EXPECT_EQ(count_rows_with_sum(list), 1);
      EXPECT_EQ(count_rows_grads_with_sum(list), 1);
    }
  }
}

TEST(JoinResidualRows, WhatOthersNeedBeforeStays) {
  no_backprop_mode off;
  for (Device device : testing::test_devices()) {
    Case c = {device, float32, {6, 40}, false};
    Array x = c.numbers(), r = c.numbers(), gamma = c.weights(1), beta = c.weights(0);
    auto rows_of = [&](const Array& sum) {
      return F::layer_normalization(constant(sum), constant(gamma), constant(beta)).array();
    };
    Rewritten read_before([&] {
      Array sum = x + r, of_axis = sum.sum(0);
      return Arrays{rows_of(sum), of_axis};
    });
    EXPECT_EQ(count_rows_with_sum(read_before), 0);
    Rewritten of_chains([&] { return Arrays{rows_of(xp::exp(x) + r)}; });
    EXPECT_EQ(count_rows_with_sum(of_chains), 0);
    for (bool changes : {false, true}) {
      Rewritten list([&] {
        Array residual = F::softmax(constant(r)).array(), sum = x + residual;
        if (changes) residual.fill(2);
        return Arrays{rows_of(sum), sum, residual};
      });
      EXPECT_EQ(count_rows_with_sum(list), !changes);
    }
  }
}

TEST(JoinRowsGradSum, WhatOthersNeedStays) {
  for (Device device : testing::test_devices()) {
    Case c = {device, float32, {6, 40}, false};
    Array x = c.numbers(), gy = c.numbers(), r = c.numbers();
    Variable gamma(c.weights(1)), beta(c.weights(0));
    auto gradient = [&](const Array& at) {
      Variable v(at);
      return grad({F::layer_normalization(v, gamma, beta)}, {v}, {constant(gy)})[0].array();
    };
    Rewritten alone([&] { return Arrays{r + gradient(x)}; });
    EXPECT_EQ(count_rows_grads_with_sum(alone), 1);
    Rewritten read_twice([&] {
      Array gx = gradient(x), other = gradient(x);
      return Arrays{gx + r, gx.sum(0), other + other};
    });
    EXPECT_EQ(count_rows_grads_with_sum(read_twice), 0);
    Rewritten changed_between([&] {
      Array at = x.sum(0) + x, gx = gradient(at);
      at *= 2.f;
      return Arrays{gx + r, at};
    });
    EXPECT_EQ(count_rows_grads_with_sum(changed_between), 0);
  }
}

// Of a Transformer no addition of a block is left: of the sums that are normalized, and of their
// gradients.
TEST(JoinResidualRows, OfATransformer) {
  for (Device device : testing::test_devices()) {
    for (DefaultDtype dtype : {DefaultDtype(float32), mixed_bf16}) {
      UsingConfig of_dtype(&Config::dtype, dtype);
      L::GPT2 net({.vocab_size = 50,
                   .n_positions = 16,
                   .n_embd = 32,
                   .n_layer = 2,
                   .n_head = 2,
                   .dropout = 0});
      net.to(device);
      Array x = (xp::arange(24, int32, device) % 50).reshape({2, 12}), t = x.reshape({24});
      Rewritten list([&] {
        Variable loss =
            F::softmax_cross_entropy(F::reshape(net(constant(x)), {-1, 50}), constant(t));
        net.cleargrads();
        loss.backward();
        Arrays results{loss.array()};
        for (const ParameterRef& p : net.params()) results.push_back(p.grad());
        return results;
      });
      EXPECT_EQ(count_rows_with_sum(list), 4);        // but the sum of embeddings
      EXPECT_EQ(count_rows_grads_with_sum(list), 4);  // the last one has no residual
    }
  }
}

}  // namespace
}  // namespace rensa

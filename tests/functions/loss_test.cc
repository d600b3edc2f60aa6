// Losses: what tables of values do not show.
#include "rensa/functions/loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "rensa/array/random_basics.h"
#include "rensa/core/error.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/reduction_functions.h"
#include "rensa/graph/recording.h"
#include "tests/testing.h"

namespace rensa {
namespace {

TEST(Loss, LabelsOutOfRangeAreAnError) {
  using Function = std::function<Variable(const Variable&, const Variable&)>;
  const std::pair<const char*, Function> functions[] = {
      {"mean", [](auto& x, auto& t) { return F::softmax_cross_entropy(x, t); }},
      {"no", [](auto& x, auto& t) { return F::softmax_cross_entropy(x, t, {.reduce = "no"}); }},
      {"smooth",
       [](auto& x, auto& t) { return F::softmax_cross_entropy(x, t, {.label_smoothing = 0.1}); }},
      {"weights",
       [](auto& x, auto& t) {
         Array w = xp::ones({3}, float32, x.device());
         return F::softmax_cross_entropy(x, t, {.class_weight = w});
       }},
      {"nll_loss", [](auto& x, auto& t) { return F::nll_loss(x, t); }},
      {"hinge", [](auto& x, auto& t) { return F::hinge(x, t); }},
      {"negative_sampling",
       [](auto& x, auto& t) {
         auto zeros = [&](const Shape& s) { return xp::zeros(s, int64, x.device()); };
         return F::negative_sampling(x, t, x[0].reshape({1, 3}).broadcast_to({3, 3}), zeros, 2);
       }},
  };
  for (Device device : testing::test_devices()) {
    for (const auto& [name, function] : functions) {
      for (int label : {3, -2, 100000}) {
        Variable x(xp::ones({2, 3}, float32, device));
        Variable t = constant(xp::array({0, label}).to(device));
        EXPECT_THROW(function(x, t).array().sum().item<float>(), IndexError) << name << label;
      }
    }
  }
}

// The mean has kernels of its own. Rows of every length, whose ends lie within vectors too.
TEST(Loss, NllLossIsTheMeanOfWhatItGivesForRows) {
  xp::random::seed(3);
  for (Device device : testing::test_devices()) {
    for (auto [rows, classes] :
         {std::pair{1, 1}, {7, 1}, {100, 3}, {33, 10}, {5, 129}, {5000, 17}}) {
      for (Dtype dtype : {float32, float64, bfloat16}) {
        SCOPED_TRACE(::testing::Message() << rows << " x " << classes << " on " << device.str());
        Array values = xp::random::normal(0, 1, {rows, classes}, float32, device).astype(dtype);
        Array t = xp::random::randint(-1, classes, {rows}).to(device);
        t[0].assign(xp::zeros({}, t.dtype(), device));  // one counts
        Variable x(values), y(values);
        Variable got = F::nll_loss(x, constant(t));
        double count = (t != -1).sum().astype(float64).item<double>();
        Variable want = F::sum(F::nll_loss(y, constant(t), {.reduce = "no"})) / count;
        bool narrow = dtype == bfloat16;
        auto close = [&](const Array& a, const Array& b) {
          double tolerance = narrow ? 2e-2 : 1e-5;
          return xp::allclose(a.astype(float64), b.astype(float64), tolerance, tolerance);
        };
        EXPECT_TRUE(close(got.array(), want.array()));
        got.backward();
        want.backward();
        EXPECT_EQ(x.grad().dtype(), dtype);
        EXPECT_TRUE(close(x.grad(), y.grad()));
        EXPECT_EQ((x.grad() != 0).sum().astype(float64).item<double>(), count);
      }
    }
    Variable none =
        F::nll_loss(xp::ones({2, 3}, float32, device), constant(xp::full({2}, -1, int32, device)));
    EXPECT_TRUE(std::isnan(none.item<float>()));
  }
}

TEST(Loss, NllLossIsOneLaunchForwardAndOneBackward) {
  for (Device device : testing::test_devices()) {
    Variable x(xp::ones({4, 3}, float32, device));
    Variable t = constant(xp::zeros({4}, int32, device));
    Array gy = xp::ones({}, float32, device);
    Recording recording;
    {
      RecorderScope scope(&recording);
      Variable y = F::nll_loss(x, t);
      y.set_grad(gy);
      y.backward();
    }
    ASSERT_EQ(recording.operations.size(), 2u);
    EXPECT_STREQ(recording.operations[0]->name(), "nll_loss");
    EXPECT_STREQ(recording.operations[1]->name(), "nll_loss_grad");
  }
}

// An impossible class has the logit -inf, and takes nothing from the others.
TEST(Loss, LogitsOfMinusInfinity) {
  float inf = std::numeric_limits<float>::infinity();
  for (Device device : testing::test_devices()) {
    for (const char* reduce : {"mean", "no"}) {
      Variable x(xp::array({{0.f, -inf, 0.f}, {-inf, 0.f, -inf}}).to(device));
      Variable t = constant(xp::array({2, 1}).to(device));
      Variable loss = F::softmax_cross_entropy(x, t, {.reduce = reduce});
      EXPECT_NEAR(loss.array().sum().item<float>(), std::log(2.f) * (loss.size() == 2 ? 1 : 0.5),
                  1e-6);
      loss.set_grad(xp::ones(loss.shape(), float32, device));
      loss.backward();
      for (float g : x.grad().to_vector<float>()) EXPECT_TRUE(std::isfinite(g)) << reduce;
    }
  }
}

TEST(Loss, SumsOfHalfTypesDoNotOverflow) {
  for (Device device : testing::test_devices()) {
    Variable x = constant(xp::full({300000}, 2.f, float16, device));
    Variable t = constant(xp::zeros({300000}, int32, device));
    EXPECT_NEAR(F::sigmoid_cross_entropy(x, t).item<float>(), 2.127f, 2e-3);
    EXPECT_NEAR(F::mean_squared_error(x, x * 0.f).item<float>(), 4.f, 1e-2);
  }
}

TEST(Loss, DistancesOfEqualsHaveGradients) {
  for (Device device : testing::test_devices()) {
    Variable a(xp::ones({2, 3}, float32, device)), b(xp::ones({2, 3}, float32, device));
    F::contrastive(a, b, constant(xp::array({0, 1}).to(device))).backward();
    EXPECT_EQ(a.grad().to_vector<float>(), std::vector<float>(6, 0));
    Variable zero(xp::zeros({2, 3}, float32, device));
    F::cosine_similarity(zero, b).sum().backward();
    for (float g : zero.grad().to_vector<float>()) EXPECT_TRUE(std::isfinite(g));
  }
}

TEST(Loss, ErrorsNameBothOperands) {
  Variable x(xp::ones({4, 3})), y(xp::ones({4, 2})), t = constant(xp::zeros({4}, int32));
  Variable column = constant(xp::zeros({3}, int32));
  const std::function<void()> mismatches[] = {
      [&] { F::squared_error(x, y); },
      [&] { F::absolute_error(x, y); },
      [&] { F::mean_squared_error(x, y); },
      [&] { F::mean_absolute_error(x, y); },
      [&] { F::huber_loss(x, y, 1); },
      [&] { F::bernoulli_nll(x, y); },
      [&] { F::gaussian_nll(x, x, y); },
      [&] { F::gaussian_kl_divergence(x, y); },
      [&] { F::kl_div(x, y); },
      [&] { F::binary_cross_entropy(x, y); },
      [&] {
        F::sigmoid_cross_entropy(x, constant(xp::zeros({4, 2}, int32)));
      },
      [&] { F::contrastive(x, y, t); },
      [&] { F::contrastive(x, x, column); },
      [&] { F::triplet(x, x, y); },
      [&] { F::cosine_similarity(x, y); },
      [&] { F::cosine_embedding_loss(x, x, column); },
      [&] { F::softmax_cross_entropy(x, column); },
      [&] { F::nll_loss(x, column); },
      [&] { F::hinge(x, column); },
      [&] { F::softmax_cross_entropy(x, t, {.class_weight = xp::ones({2})}); },
  };
  for (std::size_t k = 0; k < std::size(mismatches); ++k) {
    std::string text = testing::thrown<ShapeError>(mismatches[k]);
    EXPECT_NE(text.find("(4, 3)"), std::string::npos) << k << text;
    bool other = text.find("(4, 2)") != text.npos || text.find("(3,)") != text.npos ||
                 text.find("(2,)") != text.npos;
    EXPECT_TRUE(other) << k << text;
  }
  EXPECT_THROW(F::cross_covariance(x, xp::ones({3, 3})), ShapeError);
  auto zeros = [](const Shape& s) { return xp::zeros(s, int64); };
  auto too_few = [](const Shape&) { return xp::zeros({4}, int64); };
  EXPECT_THROW(F::negative_sampling(x, t, y, zeros, 2), ShapeError);
  EXPECT_THROW(F::negative_sampling(x, t, x, too_few, 2), ShapeError);
  EXPECT_THROW(F::negative_sampling(x, t, x, zeros, 2, {.reduce = "mean"}), ValueError);
  EXPECT_THROW(F::decov(xp::ones({3})), ShapeError);
  EXPECT_THROW(F::sigmoid_cross_entropy(x, x), DtypeError);
  EXPECT_THROW(F::softmax_cross_entropy(x, constant(xp::zeros({4}))), DtypeError);
}

TEST(Loss, OptionsAreOfTheirWords) {
  Variable x(xp::ones({4, 3})), t = constant(xp::zeros({4}, int32));
  EXPECT_THROW(F::softmax_cross_entropy(x, t, {.reduce = "sum"}), ValueError);
  EXPECT_THROW(F::softmax_cross_entropy(x, t, {.label_smoothing = 1.5}), ValueError);
  EXPECT_THROW(F::softmax_cross_entropy(x, x, {.soft_target_loss = "hinge"}), ValueError);
  EXPECT_THROW(F::softmax_cross_entropy(x, x, {.label_smoothing = 0.1}), ValueError);
  EXPECT_THROW(F::hinge(x, t, "L3"), ValueError);
  EXPECT_THROW(F::hinge(x, t, "L1", "sum"), ValueError);
  EXPECT_THROW(F::huber_loss(x, x, 1, "mean"), ValueError);
  EXPECT_THROW(F::huber_loss(x, x, -1), ValueError);
  EXPECT_THROW(F::bernoulli_nll(x, x, "none"), ValueError);
  EXPECT_THROW(F::contrastive(x, x, t, 0), ValueError);
  EXPECT_THROW(F::triplet(x, x, x, -1), ValueError);
  EXPECT_THROW(F::decov(x, "mean"), ValueError);
}

}  // namespace
}  // namespace rensa

// Losses of sequences: what tables of values do not show.
#include "rensa/functions/sequence_loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rensa/array/creation.h"
#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "tests/testing.h"

namespace rensa {
namespace {

// Places are more than a block's threads, and their classes come often.
TEST(SequenceLoss, CtcOfLongLabelsIsTheCpus) {
  xp::random::seed(3);
  constexpr std::int64_t steps = 900, n = 2, labels = 400, classes = 7;
  Array x = xp::random::normal(0, 1, {steps, n, classes}, float32, cpu());
  Array t = xp::random::randint(1, classes, {n, labels}, int32, cpu());
  auto gradient = [&](Device device, Dtype dtype) {
    Variable input(x.to(device).astype(dtype));
    Variable loss = F::connectionist_temporal_classification(input, t.to(device), 0);
    loss.backward();
    return input.grad().to(cpu()).astype(float64);
  };
  Array want = gradient(cpu(), float64);
  EXPECT_TRUE(xp::allclose(xp::sum(want, 2), xp::zeros({steps, n}, float64), 0, 1e-10));
  for (Device device : testing::test_devices()) {
    EXPECT_TRUE(xp::allclose(gradient(device, float64), want, 1e-9, 1e-12)) << device;
    EXPECT_TRUE(xp::allclose(gradient(device, float32), want, 0, 2e-3)) << device;
    EXPECT_TRUE(xp::array_equal(gradient(device, float32), gradient(device, float32)));
  }
}

TEST(SequenceLoss, CtcOfTooFewStepsIsInfinite) {
  for (Device device : testing::test_devices()) {
    Variable x(xp::zeros({2, 1, 3}, float32, device));
    Array t = xp::array({{1, 1}}).to(device);  // takes three steps
    EXPECT_EQ(F::connectionist_temporal_classification(x, t, 0).item<float>(), INFINITY);
    Array none = xp::zeros({1}, int32, device);
    auto loss = [&](const Array& labels) {
      return F::connectionist_temporal_classification(
                 x, t, 0, {.input_length = none, .label_length = labels})
          .item<float>();
    };
    EXPECT_EQ(loss(none), 0.f);
    EXPECT_EQ(loss(none + 1), INFINITY);
  }
}

TEST(SequenceLoss, ErrorsNameWhatDoesNotFit) {
  using testing::thrown;
  for (Device device : testing::test_devices()) {
    Variable x(xp::zeros({4, 2, 3}, float32, device));
    Array t = xp::ones({2, 2}, int32, device), lengths = xp::full({2}, 5, int32, device);
    auto ctc = [&](const Array& labels, std::int64_t blank, const F::CtcOptions& options = {}) {
      F::connectionist_temporal_classification(x, labels, blank, options).item<float>();
    };
    EXPECT_NE(thrown<IndexError>([&] { ctc(t * 3, 0); }).find("label 3"), std::string::npos);
    EXPECT_THROW(ctc(-t, 0), IndexError);
    EXPECT_NE(thrown<ValueError>([&] { ctc(t, 0, {.input_length = lengths}); }).find("0 to 4"),
              std::string::npos);
    EXPECT_THROW(ctc(t, 0, {.label_length = lengths}), ValueError);
    EXPECT_THROW(ctc(t, 0, {.label_length = -lengths}), ValueError);
    EXPECT_THROW(ctc(t, 3), ValueError);
    EXPECT_THROW(ctc(t, 0, {.reduce = "sum"}), ValueError);
    EXPECT_NE(thrown<ShapeError>([&] {
                ctc(xp::ones({3, 2}, int32, device), 0);
              }).find("(3, 2)"),
              std::string::npos);
    EXPECT_THROW(ctc(t, 0, {.input_length = xp::ones({3}, int32, device)}), ShapeError);
    EXPECT_THROW(ctc(t.astype(float32), 0), DtypeError);
    EXPECT_THROW(ctc(t, 0, {.input_length = xp::ones({2}, float32, device)}), DtypeError);
    Variable loss = F::connectionist_temporal_classification(x, t, 0);
    EXPECT_THROW(loss.backward({.enable_double_backprop = true}), NotImplementedError);

    Variable cost(xp::zeros({3, 3}, float32, device));
    Variable one(xp::zeros({1, 3}, float32, device)), two(xp::zeros({2, 3}, float32, device));
    Variable y(xp::zeros({1}, int32, device));
    EXPECT_NE(thrown<ShapeError>([&] {
                F::crf1d(cost, {one, two}, {y, y});
              }).find("step 1"),
              std::string::npos);
    EXPECT_THROW(F::crf1d(two, {one}, {y}), ShapeError);
    EXPECT_THROW(F::crf1d(cost, {one}, {y, y}), ValueError);
    EXPECT_THROW(F::crf1d(cost, {one}, {y}, "sum"), ValueError);
    EXPECT_THROW(F::crf1d(cost, {}, {}), ValueError);
    EXPECT_THROW(F::argmax_crf1d(cost, {}), ValueError);
  }
}

}  // namespace
}  // namespace rensa

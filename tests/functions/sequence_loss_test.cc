// Losses of sequences: what tables of values do not show.
#include "rensa/functions/sequence_loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rensa/array/creation.h"
#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/functions/reduction_functions.h"
#include "tests/testing.h"

namespace rensa {
namespace {

struct CtcCase {
  std::int64_t steps, n, labels, classes, blank;
  bool any;  // labels that are equal to the blank, and lengths of each sample's own
};

/// The gradient and, beside it in class `classes`, the loss of each sample, as float64.
Array ctc_results(const CtcCase& c, Device device, Dtype dtype) {
  xp::random::seed(3);
  Array x = xp::random::normal(0, 1, {c.steps, c.n, c.classes}, float32, cpu());
  Array t = xp::random::randint(0, c.classes - (c.any ? 0 : 1), {c.n, c.labels}, int32, cpu());
  if (!c.any) t = xp::where(t < c.blank, t, t + 1);
  F::CtcOptions options = {.reduce = "no"};
  if (c.any) {
    options.input_length = xp::random::randint(c.steps / 2, c.steps + 1, {c.n}, int32, cpu());
    options.label_length = xp::random::randint(0, c.labels + 1, {c.n}, int32, cpu());
    options.input_length = options.input_length.to(device);
    options.label_length = options.label_length.to(device);
  }
  Variable input(x.to(device).astype(dtype));
  Variable losses = F::connectionist_temporal_classification(input, t.to(device), c.blank, options);
  Array weights = xp::arange(c.n, dtype, device) + 1;
  F::sum(losses * weights).backward();
  Array loss = losses.array().broadcast_to({c.steps, c.n}).reshape({c.steps, c.n, 1});
  return xp::concatenate({input.grad(), loss}, 2).to(cpu()).astype(float64);
}

// A thread for each place, of one warp to a whole block, and several places a thread.
TEST(SequenceLoss, CtcOfManySizesIsTheCpus) {
  for (const CtcCase& c : {CtcCase{1, 2, 1, 4, 0, false}, CtcCase{1, 3, 0, 4, 1, false},
                           CtcCase{7, 5, 3, 4, 3, true}, CtcCase{40, 3, 15, 130, 127, false},
                           CtcCase{66, 4, 16, 3, 2, true}, CtcCase{130, 2, 64, 128, 127, false},
                           CtcCase{900, 2, 400, 7, 0, false}, CtcCase{700, 1, 511, 40, 39, false},
                           CtcCase{700, 2, 512, 40, 5, true}, CtcCase{1300, 2, 600, 9, 0, false}}) {
    SCOPED_TRACE(c.labels);
    Array want = ctc_results(c, cpu(), float64);
    for (Device device : testing::test_devices()) {
      Array wide = ctc_results(c, device, float64), narrow = ctc_results(c, device, float32);
      EXPECT_TRUE(xp::allclose(wide, want, 1e-9, 1e-11, true)) << device;
      EXPECT_TRUE(xp::allclose(narrow, want, 1e-5, 2e-2, true)) << device;
      EXPECT_TRUE(xp::array_equal(ctc_results(c, device, float32), narrow, true));
    }
  }
}

// What a class's score adds to all others' is taken from them: the gradient of a step sums to 0.
TEST(SequenceLoss, CtcsGradientSumsToNothing) {
  for (Device device : testing::test_devices()) {
    Array got = ctc_results({900, 2, 400, 7, 0, false}, device, float64);
    Array sums = xp::sum(Array(got[{ellipsis, Slice(0, 7)}]), 2);
    EXPECT_TRUE(xp::allclose(sums, xp::zeros({900, 2}, float64, cpu()), 0, 1e-10)) << device;
  }
}

TEST(SequenceLoss, CtcOfOneSampleWithoutRoomLeavesTheOthers) {
  for (Device device : testing::test_devices()) {
    Variable x(xp::zeros({2, 2, 3}, float32, device));
    Array t = xp::array({{1, 1}, {1, 2}}).to(device);  // three steps and two
    Variable losses = F::connectionist_temporal_classification(x, t, 0, {.reduce = "no"});
    F::sum(losses).backward();
    EXPECT_EQ(losses.array()[0].item<float>(), INFINITY);
    EXPECT_NEAR(losses.array()[1].item<float>(), 2 * std::log(3.f), 1e-6);
    Array grad = x.grad().to(cpu());
    EXPECT_TRUE(xp::isnan(Array(grad[{Slice(), 0}])).any().item<bool>());
    Array want = xp::array({{1.f / 3, -2.f / 3, 1.f / 3}, {1.f / 3, 1.f / 3, -2.f / 3}});
    EXPECT_TRUE(xp::allclose(Array(grad[{Slice(), 1}]), want.to(cpu()), 1e-5, 1e-6));
  }
}

// Scores that are not numbers are seen in the loss, whatever the place.
TEST(SequenceLoss, CtcOfNanIsNan) {
  for (Device device : testing::test_devices()) {
    for (std::int64_t step : {0, 3, 5}) {
      Array x = xp::zeros({6, 1, 3}, float32, device);
      x[{step, 0, 1}] = NAN;
      Array t = xp::array({{1, 2}}).to(device);
      float loss = F::connectionist_temporal_classification(x, t, 0).item<float>();
      EXPECT_TRUE(std::isnan(loss)) << device << " " << step;
    }
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

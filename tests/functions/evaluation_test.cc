// Measures of a model's output, beside what the routines of arrays make of the same.
#include "rensa/functions/evaluation.h"

#include <gtest/gtest.h>

#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "tests/testing.h"

namespace rensa {
namespace {

// Lengths around a vector's, a block's and several blocks', at addresses of any alignment; every
// dtype of scores and labels, and labels that are neither 0 nor 1.
TEST(Evaluation, BinaryAccuracyCountsAsTheRoutinesDo) {
  xp::random::seed(5);
  for (Device device : testing::test_devices()) {
    for (std::int64_t n : {1, 3, 4, 5, 1023, 1025, 70001, 300003}) {
      Array scores = xp::random::normal(0, 1, {n + 1}, float32, device);
      scores[Slice(0, none, 5)] = xp::zeros({}, float32, device);
      scores[Slice(0, none, 7)] = xp::full({}, NAN, float32, device);
      Array drawn = xp::random::randint(-1, 3, {n + 1}, int64).to(device);
      for (Dtype dtype : {float16, bfloat16, float32, float64}) {
        for (Dtype label : {int8, int32, int64, uint8, uint64}) {
          for (std::int64_t begin : {0, 1}) {
            Array y = scores.astype(dtype)[Slice(begin, begin + n)];
            Array t = drawn.astype(label)[Slice(begin, begin + n)];
            Array right = ((y >= 0).astype(label) == t).sum();
            Array share = right / xp::maximum((t != -1).sum(), 1);
            Array got = F::binary_accuracy(constant(y), constant(t)).array();
            EXPECT_EQ(got.dtype(), dtype);
            EXPECT_TRUE(xp::array_equal(got, share.astype(dtype)))
                << n << " " << dtype_name(dtype) << " " << dtype_name(label);
          }
        }
      }
    }
  }
}

TEST(Evaluation, BinaryAccuracyOfNothingIsZero) {
  for (Device device : testing::test_devices()) {
    Variable none = constant(xp::zeros({0}, float32, device));
    Variable y = constant(xp::ones({300}, float32, device));
    EXPECT_EQ(
        F::binary_accuracy(none, constant(xp::zeros({0}, int32, device))).array().item<float>(), 0);
    EXPECT_EQ(
        F::binary_accuracy(y, constant(xp::full({300}, -1, int32, device))).array().item<float>(),
        0);
  }
}

TEST(Evaluation, R2ScoreOfNarrowDtypesIsThatOfWideOnes) {
  xp::random::seed(6);
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float16, bfloat16, float32}) {
      Array t = xp::random::normal(0, 1, {513, 67}, float32, device).astype(dtype);
      Array p = (t + xp::random::normal(0, 0.25, {513, 67}, float32, device)).astype(dtype);
      auto of = [](const Array& a, const Array& b) {
        return F::r2_score(constant(a), constant(b), "raw_values").array().astype(float64);
      };
      Array got = of(p, t), want = of(p.astype(float64), t.astype(float64));
      double tolerance = dtype == float32 ? 1e-5 : dtype == float16 ? 2e-3 : 1e-2;
      EXPECT_TRUE(xp::allclose(got, want, tolerance, tolerance)) << dtype_name(dtype);
    }
  }
}

}  // namespace
}  // namespace rensa

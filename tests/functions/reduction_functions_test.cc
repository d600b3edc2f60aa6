// Reductions: how their axes and keywords are given. Values and gradients: function_cases_test.
#include "rensa/functions/reduction_functions.h"

#include <gtest/gtest.h>

#include "rensa/array/creation.h"
#include "rensa/array/statistics.h"
#include "rensa/core/error.h"

namespace rensa {
namespace {

TEST(ReductionFunctions, KeywordsAreNoAxes) {
  Variable x(xp::arange(24).astype(float32).reshape({2, 3, 4}));
  // One keyword alone is no list of one axis either.
  EXPECT_EQ(F::sum(x, {.keepdims = true}).shape(), (Shape{1, 1, 1}));
  EXPECT_EQ(x.sum({.keepdims = true}).shape(), (Shape{1, 1, 1}));
  EXPECT_EQ(F::mean(x, {.axis = 1}).shape(), (Shape{2, 4}));
  EXPECT_EQ(F::sum(x, {1}).shape(), (Shape{2, 4}));
  EXPECT_EQ(F::sum(x, {0, 2}).shape(), (Shape{3}));
  using Function = Variable (*)(const Variable&, const F::ReduceOptions&);
  for (Function f : {Function(F::sum), Function(F::mean), Function(F::prod), Function(F::max),
                     Function(F::min), Function(F::logsumexp)}) {
    EXPECT_EQ(f(x, {.axis = {0, 2}, .keepdims = true}).shape(), (Shape{1, 3, 1}));
  }
  EXPECT_TRUE(xp::array_equal(F::var(x, {.axis = 1, .ddof = 1}).array(),
                              xp::var(x.array(), {.axis = 1, .ddof = 1})));
  EXPECT_EQ(x.std({.axis = -1, .keepdims = true}).shape(), (Shape{2, 3, 1}));
  Variable weights(xp::array({1.0f, 3.0f}));
  Variable average = F::average(x, {.axis = 0, .weights = weights});
  EXPECT_FLOAT_EQ(average.array().to_vector<float>()[0], 9);
  EXPECT_EQ(F::average(x, {.weights = x, .keepdims = true}).shape(), (Shape{1, 1, 1}));
}

TEST(ReductionFunctions, ListsOfTooManyAxes) {
  EXPECT_THROW(F::sum(Variable(xp::zeros({2})), {0, 1, 2, 3, 4, 5, 6, 7, 8}), ShapeError);
}

}  // namespace
}  // namespace rensa

// What attention refuses, queries without keys, and its dropout.
#include "rensa/functions/attention.h"

#include <gtest/gtest.h>

#include "rensa/array/creation.h"
#include "rensa/array/random_basics.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/functions.h"
#include "tests/testing.h"

namespace rensa {
namespace {

Variable ones(const Shape& shape, Dtype dtype = float32) {
  return constant(xp::ones(shape, dtype));
}

TEST(Attention, RefusesWhatDoesNotFit) {
  auto run = [](const Variable& q, const Variable& k, const Variable& v,
                F::AttentionOptions options = {}) {
    (void)F::scaled_dot_product_attention(q, k, v, options);
  };
  Variable q = ones({2, 3, 4}), k = ones({2, 5, 4}), v = ones({2, 5, 6});
  EXPECT_NO_THROW(run(q, k, v));
  EXPECT_THROW(run(q, ones({2, 5, 3}), v), ShapeError);
  EXPECT_THROW(run(q, k, ones({2, 4, 6})), ShapeError);
  EXPECT_THROW(run(ones({4}), k, v), ShapeError);
  EXPECT_THROW(run(q, ones({2, 5, 4}, float64), v), DtypeError);
  EXPECT_THROW(run(q, k, v, {.mask = xp::ones({3, 4}, bool_)}), ShapeError);
  EXPECT_THROW(run(q, k, v, {.mask = xp::ones({3, 5}, int32)}), DtypeError);
  EXPECT_THROW(run(q, k, v, {.mask = xp::ones({3, 5}, bool_), .causal = true}), ValueError);
}

// A mask must not make the scores larger, nor be taken for another head's.
TEST(Attention, AMaskThatDoesNotBroadcastToTheScores) {
  Variable x(xp::ones({2, 3, 4}));
  for (const Shape& shape : {Shape{2, 1, 1, 3}, Shape{3, 1, 3}, Shape{4, 3}, Shape{1, 1, 1, 3}}) {
    for (Dtype dtype : {bool_, float32}) {
      std::string text = testing::thrown<ShapeError>(
          [&] { F::scaled_dot_product_attention(x, x, x, {.mask = xp::ones(shape, dtype)}); });
      EXPECT_NE(text.find(shape.str()), std::string::npos) << text;
    }
  }
  Variable query(xp::ones({2, 8, 3, 4})), key(xp::ones({2, 4, 3, 4}));
  EXPECT_THROW(F::scaled_dot_product_attention(query, key, key, {.mask = xp::ones({2, 2, 3, 3})}),
               ShapeError);
  EXPECT_THROW(F::scaled_dot_product_attention(query, key, key, {.mask = xp::ones({2, 4, 3, 3})}),
               ShapeError);
}

TEST(Attention, AQueryWithoutKeysHasZeros) {
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float32, float16, bfloat16, float64}) {
      Variable q(xp::ones({2, 4}, dtype, device)), k(xp::ones({3, 4}, dtype, device));
      Array mask = xp::array({{true, true, false}, {false, false, false}}, device);
      Variable y = F::scaled_dot_product_attention(q, k, k, {.mask = mask});
      EXPECT_EQ(y.array().to_vector<float>(), (std::vector<float>{1, 1, 1, 1, 0, 0, 0, 0}));
      F::sum(y).backward();
      EXPECT_TRUE(xp::isfinite(q.grad()).all().item<bool>());
    }
  }
}

TEST(Attention, AMaskOfGroupedHeads) {
  for (Device device : testing::test_devices()) {
    xp::random::seed(2);
    auto draw = [&](const Shape& shape) {
      return constant(xp::random::uniform(-1, 1, shape, float64, device));
    };
    Variable q = draw({2, 4, 3, 2}), k = draw({2, 2, 5, 2}), v = draw({2, 2, 5, 2});
    Variable whole_k = F::repeat(k, {2}, 1), whole_v = F::repeat(v, {2}, 1);
    for (const Shape& shape : {Shape{3, 5}, Shape{4, 3, 5}, Shape{2, 1, 3, 5}, Shape{2, 4, 1, 5}}) {
      F::AttentionOptions options{.mask = draw(shape).array() > -0.3};
      Array got = F::scaled_dot_product_attention(q, k, v, options).array();
      Array want = F::scaled_dot_product_attention(q, whole_k, whole_v, options).array();
      EXPECT_TRUE(xp::allclose(got, want, 1e-12, 1e-12)) << shape.str();
    }
  }
}

TEST(Attention, DropsWeights) {
  Variable q = ones({8, 4}), k = ones({32, 4});
  auto run = [&] {
    return F::scaled_dot_product_attention(q, k, k, {.dropout_ratio = 0.5}).array();
  };
  EXPECT_FALSE(xp::allclose(run(), xp::ones({8, 4})));
  UsingConfig<bool> off(&Config::train, false);
  EXPECT_TRUE(xp::allclose(run(), xp::ones({8, 4})));
}

}  // namespace
}  // namespace rensa

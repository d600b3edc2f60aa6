// What functions with weights refuse.
#include "rensa/functions/connection.h"

#include <gtest/gtest.h>

#include "rensa/array/creation.h"
#include "rensa/core/error.h"
#include "tests/testing.h"

namespace rensa {
namespace {

TEST(EmbedId, TakesIntegersAndAMatrix) {
  Variable ids = constant(xp::zeros({2}, int32)), W = constant(xp::ones({3, 4}));
  EXPECT_THROW(F::embed_id(W, W), DtypeError);
  EXPECT_THROW(F::embed_id(ids, ids), ShapeError);
  EXPECT_THROW(F::embed_id(ids, constant(xp::ones({3, 4}, int32))), DtypeError);
}

TEST(EmbedId, IntegersOutOfRange) {
  for (Device device : testing::test_devices()) {
    Variable W = constant(xp::arange(12, float32, device).reshape({3, 4}));
    auto rows = [&](std::int64_t id, const F::EmbedIDOptions& options) {
      return F::embed_id(constant(xp::full({1}, id, int32, device)), W, options)
          .array()
          .to_vector<float>();
    };
    EXPECT_EQ(rows(2, {}), (std::vector<float>{8, 9, 10, 11}));
    EXPECT_EQ(rows(7, {.ignore_label = 7}), std::vector<float>(4, 0));
    EXPECT_EQ(rows(-1, {.ignore_label = -1}), std::vector<float>(4, 0));
    EXPECT_THROW(rows(-1, {}), IndexError);
    EXPECT_THROW(rows(-1, {.ignore_label = 1}), IndexError);
    EXPECT_THROW(rows(3, {}), IndexError);
    EXPECT_THROW(rows(3, {.ignore_label = 7}), IndexError);
  }
}

TEST(Bilinear, ShapesThatDoNotFit) {
  auto ones = [](const Shape& shape) { return constant(xp::ones(shape)); };
  EXPECT_THROW(F::bilinear(ones({2, 3}), ones({3, 4}), ones({3, 4, 5})), ShapeError);
  EXPECT_THROW(F::bilinear(ones({2, 3}), ones({2, 3}), ones({3, 4, 5})), ShapeError);
  EXPECT_THROW(F::bilinear(ones({2, 3}), ones({2, 4}), ones({3, 4})), ShapeError);
  EXPECT_THROW(F::bilinear(ones({2, 3}), ones({2, 4}), ones({3, 4, 5}), ones({3, 5})), ValueError);
  EXPECT_THROW(F::bilinear(ones({2, 3}), ones({2, 4}), ones({3, 4, 5}), ones({3, 5}), ones({4, 4}),
                           ones({5})),
               ShapeError);
}

}  // namespace
}  // namespace rensa

// What functions with weights refuse, and how linear's gradient is computed.
#include "rensa/functions/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "rensa/array/creation.h"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"
#include "rensa/functions/activation.h"
#include "rensa/functions/math_functions.h"
#include "rensa/functions/reduction_functions.h"
#include "rensa/graph/recording.h"
#include "rensa/operations/matmul/matmul.h"
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

// The plan of linear's gradient is chosen with relu's in view where that is next, and only there.
TEST(Linear, GradientWithRespectToWhatReluGave) {
  Variable h(xp::ones({3, 4})), W(xp::ones({5, 4}));
  auto before_gate = [&](const Variable& x) {
    Variable loss = F::sum(F::linear(x, W));
    Recording recording;
    {
      RecorderScope scope(&recording);
      loss.backward();
    }
    std::vector<bool> found;
    for (const auto& operation : recording.operations) {
      auto* product = dynamic_cast<const operations::Matmul*>(operation.get());
      if (product) found.push_back(product->gate_follows);
    }
    return found;
  };
  EXPECT_THAT(before_gate(F::relu(h)), ::testing::UnorderedElementsAre(true, false));
  EXPECT_THAT(before_gate(F::tanh(h)), ::testing::UnorderedElementsAre(false, false));
  EXPECT_THAT(before_gate(h), ::testing::UnorderedElementsAre(false, false));
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

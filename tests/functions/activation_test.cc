// Activations: what tables of values do not show.
#include "rensa/functions/activation.h"

#include <gtest/gtest.h>

#include "rensa/array/random_basics.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/graph/recording.h"
#include "tests/testing.h"

namespace rensa {
namespace {

TEST(Activation, RreluDrawsSlopesInTrainingAlone) {
  for (Device device : testing::test_devices()) {
    Array x = xp::full({1000}, -1.f, float32, device), r;
    Variable y = F::rrelu(x, 0.25, 0.5, {.return_r = &r});
    EXPECT_TRUE(xp::array_equal(y.array(), -r));
    EXPECT_GE(xp::min(r).item<float>(), 0.25f);
    EXPECT_LT(xp::max(r).item<float>(), 0.5f);
    EXPECT_LT(xp::min(r).item<float>(), 0.3f);
    EXPECT_GT(xp::max(r).item<float>(), 0.45f);
    UsingConfig<bool> testing(&Config::train, false);
    EXPECT_TRUE(xp::array_equal(F::rrelu(x, 0.25, 0.5).array(), x * 0.375f));
    EXPECT_TRUE(xp::array_equal(F::rrelu(x, 0.25, 0.5, {.return_r = &r}).array(), x * 0.375f));
    EXPECT_EQ(r.to_vector<float>()[0], 0.375f);
  }
}

TEST(Activation, EachOfTheGreatestHasMaxoutsGradient) {
  for (Device device : testing::test_devices()) {
    Variable x(xp::array({{1.f, 1.f, 0.f, 2.f}}).to(device));
    F::maxout(x, 2).sum().backward();
    EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{1, 1, 0, 1}));
  }
}

// One kernel each way, into the halves of one array.
TEST(Activation, HalvesAreNotCopied) {
  for (Device device : testing::test_devices()) {
    for (auto function : {F::crelu, F::glu}) {
      Variable x(xp::ones({4, 6}, float32, device));
      Recording recording;
      {
        RecorderScope scope(&recording);
        Variable y = function(x, 1);
        y.set_grad(y.array());
        y.backward();
      }
      std::string names;
      for (const auto& operation : recording.operations)
        names += operation->name() + std::string(" ");
      EXPECT_EQ(recording.operations.size(), 2u) << names;
    }
  }
}

TEST(Activation, ErrorsNameWhatDoesNotFit) {
  Variable x(xp::ones({2, 3, 5}));
  for (auto function : {F::prelu, F::swish}) {
    std::string text = testing::thrown<ShapeError>([&] { function(x, xp::ones({5})); });
    EXPECT_NE(text.find("(5,)"), std::string::npos) << text;
    EXPECT_NE(text.find("(2, 3, 5)"), std::string::npos) << text;
    EXPECT_THROW(function(x, xp::ones({2, 3, 5})), ShapeError);
    EXPECT_THROW(function(xp::ones({}), xp::ones({})), ShapeError);
    EXPECT_EQ(function(x, xp::ones({3, 5})).shape(), x.shape());
  }
  EXPECT_THROW(F::maxout(x, 2), ShapeError);
  EXPECT_THROW(F::maxout(x, 0), ValueError);
  EXPECT_THROW(F::maxout(x, 1, 3), IndexError);
  EXPECT_THROW(F::glu(x), ShapeError);
  EXPECT_THROW(F::glu(x, 3), IndexError);
  EXPECT_THROW(F::crelu(x, -4), IndexError);
  EXPECT_THROW(F::rrelu(x, 0.5, 0.25), ValueError);
  EXPECT_THROW(F::rrelu(x, 0.25, 1), ValueError);
  EXPECT_THROW(F::rrelu(x, 0.25, 0.5, {.r = xp::ones({5})}), ShapeError);
}

}  // namespace
}  // namespace rensa

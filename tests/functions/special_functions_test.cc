// Special functions: what tables of values do not show.
#include "rensa/functions/special_functions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "rensa/array/creation.h"
#include "tests/testing.h"

namespace rensa {
namespace {

/// Values in (0, 1): even ones, and powers of two down to the least normal float.
std::vector<float> shares() {
  std::vector<float> values;
  for (int k = 1; k < 3000; ++k) values.push_back(static_cast<float>(k) / 3000);
  for (int k = 1; k <= 126; ++k) values.push_back(std::ldexp(1.0f, -k));
  for (int k = 2; k <= 24; ++k) values.push_back(1 - std::ldexp(1.0f, -k));
  return values;
}

// float32 has formulas of its own, float64 the iterations that these are compared with.
TEST(SpecialFunctions, InversesOverFloatAreThoseOverDouble) {
  using Function = Variable (*)(const Variable&);
  const std::pair<const char*, Function> functions[] = {
      {"erfinv", F::erfinv}, {"erfcinv", F::erfcinv}, {"ndtri", F::ndtri}};
  for (Device device : testing::test_devices()) {
    Array x = xp::array(shares()).to(device);
    for (auto [name, function] : functions) {
      std::vector<float> got = function(constant(x)).array().to_vector<float>();
      std::vector<double> want = function(constant(x.astype(float64))).array().to_vector<double>();
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t k = 0; k < got.size(); ++k) {
        EXPECT_NEAR(got[k], want[k], 5e-7 * std::abs(want[k])) << name << " of " << shares()[k];
      }
    }
  }
}

TEST(SpecialFunctions, InversesAtTheEdges) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float64, float32, bfloat16, float16}) {
      auto of = [&](auto function, std::vector<float> x) {
        Array y = function(constant(xp::array(x).astype(dtype).to(device))).array();
        return y.astype(float32).template to_vector<float>();
      };
      EXPECT_EQ(of(F::erfinv, {1, -1, 0}), (std::vector<float>{inf, -inf, 0}));
      EXPECT_EQ(of(F::erfcinv, {0, 2, 1}), (std::vector<float>{inf, -inf, 0}));
      EXPECT_EQ(of(F::ndtri, {0, 1, 0.5f}), (std::vector<float>{-inf, inf, 0}));
      for (float y : of(F::erfinv, {1.5f, -1.5f, inf, -inf, NAN})) EXPECT_TRUE(std::isnan(y));
      for (float y : of(F::erfcinv, {2.5f, -0.5f, inf, -inf, NAN})) EXPECT_TRUE(std::isnan(y));
      for (float y : of(F::ndtri, {1.5f, -0.5f, inf, -inf, NAN})) EXPECT_TRUE(std::isnan(y));
      EXPECT_TRUE(std::signbit(of(F::erfinv, {-0.0f})[0]));
    }
  }
}

}  // namespace
}  // namespace rensa

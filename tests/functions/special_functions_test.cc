// Special functions: what tables of values do not show.
#include "rensa/functions/special_functions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "rensa/array/creation.h"
#include "rensa/array/routines.h"
#include "rensa/functions/math_functions.h"
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

/// The numbers as float32, bfloat16 or float16 has them, with the most that a result of that dtype
/// may be off by as a share of itself, beside `error`: half of the last place's unit.
struct Rounded {
  std::vector<float> values;
  Array array;
  double tolerance;
  Rounded(const std::vector<float>& numbers, Dtype dtype, Device device, double error)
      : array(xp::array(numbers).astype(dtype).to(device)),
        tolerance(error + (dtype == bfloat16  ? 0x1p-8
                           : dtype == float16 ? 0x1p-11
                                              : 0)) {
    values = array.astype(float32).to_vector<float>();
  }
  std::vector<float> of(Variable (*function)(const Variable&)) const {
    return function(constant(array)).array().astype(float32).to_vector<float>();
  }
};

TEST(SpecialFunctions, ErfinvOverNarrowDtypes) {
  std::vector<float> numbers;
  for (int k = -1023; k < 1024; ++k) numbers.push_back(static_cast<float>(k) / 1024);
  for (int k = 1; k <= 14; ++k) numbers.push_back(std::ldexp(1.0f, -k));
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float32, bfloat16, float16}) {
      Rounded x(numbers, dtype, device, 5e-7);
      const double subnormal = dtype == float16 ? 0x1p-25 : 0;  // half of their unit
      Array wide = x.array.astype(float64);
      std::vector<double> want = F::erfinv(constant(wide)).array().to_vector<double>();
      std::vector<float> got = x.of(F::erfinv);
      for (std::size_t k = 0; k < got.size(); ++k) {
        if (std::isinf(want[k])) EXPECT_EQ(got[k], want[k]) << x.values[k];  // rounded to 1
        else
          EXPECT_NEAR(got[k], want[k], x.tolerance * std::abs(want[k]) + subnormal) << x.values[k];
      }
    }
  }
}

TEST(SpecialFunctions, LgammaIsThatOverDouble) {
  std::vector<float> numbers;
  for (int k = 1; k < 6000; ++k) numbers.push_back(static_cast<float>(k) / 512);
  for (float x = 1e-38f; x < 4e36f; x *= 1.7f) numbers.push_back(x);
  for (float x : {0.7f, 1.5f, 3.0f}) {
    for (float to : {0.0f, 10.0f}) numbers.push_back(std::nextafter(x, to));
  }
  for (int k = 1; k < 6000; ++k) numbers.push_back(static_cast<float>(-k) / 499);
  for (float x : {-1e-40f, -1e-20f, -1e-9f, -1e-8f, 1e-40f, 1e-45f}) numbers.push_back(x);
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float32, bfloat16, float16}) {
      Rounded x(numbers, dtype, device, 5e-7);
      std::vector<float> got = x.of(F::lgamma);
      for (std::size_t k = 0; k < got.size(); ++k) {
        double want = std::lgamma(static_cast<double>(x.values[k]));
        if (dtype == float16 && want > 65504) continue;
        // Below 0 what cancels is as large as the logarithms of gamma(-x) and of the sine.
        double size = x.values[k] < 0 ? 1 + 2 * std::abs(std::lgamma(-x.values[k])) : 0;
        if (std::isinf(want)) EXPECT_EQ(got[k], want) << x.values[k];
        else EXPECT_NEAR(got[k], want, x.tolerance * std::abs(want) + 5e-7 * size) << x.values[k];
      }
    }
  }
}

TEST(SpecialFunctions, LgammaAtTheEdges) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  for (Device device : testing::test_devices()) {
    for (Dtype dtype : {float64, float32, bfloat16, float16}) {
      auto of = [&](std::vector<float> x) {
        Array y = F::lgamma(constant(xp::array(x).astype(dtype).to(device))).array();
        return y.astype(float32).to_vector<float>();
      };
      for (float y : of({0, -0.0f, inf, -inf, -1, -2, -20, -2048})) EXPECT_EQ(y, inf);
      for (float y : of({1, 2})) EXPECT_TRUE(y == 0 && !std::signbit(y));
      EXPECT_TRUE(std::isnan(of({NAN})[0]));
    }
  }
}

TEST(SpecialFunctions, ZetaOfLargeOrders) {
  for (Device device : testing::test_devices()) {
    Array q = xp::array({0.75, 1.0, 1.5, 10.258}).to(device);
    for (double order : {25.0, 38.0, 45.0, 100.0}) {
      Variable x(q.astype(float32));
      Variable y = F::zeta(order, x);
      F::sum(y).backward();
      Array want = F::zeta(order, constant(q)).array();
      Array slope = -order * F::zeta(order + 1, constant(q)).array();
      EXPECT_TRUE(xp::allclose(y.array().astype(float64), want, 1e-4, 1e-37))
          << order << y.array() << want;
      EXPECT_TRUE(xp::allclose(x.grad().astype(float64), slope, 1e-4, 1e-37))
          << order << x.grad() << slope;
    }
  }
}

// The first derivative of digamma has a formula of its own: zeta(2, x) above 0, that of reflection
// below.
TEST(SpecialFunctions, TheFirstPolygamma) {
  constexpr double kPi = 3.14159265358979323846;
  for (Device device : testing::test_devices()) {
    Array x =
        xp::concatenate({xp::linspace(1e-3, 12, 997), xp::array({1e-8, 40.0, 1e10})}).to(device);
    auto of = [](const Array& a) { return F::polygamma(1, constant(a)).array(); };
    std::vector<double> got = of(x).to_vector<double>();
    std::vector<double> want = F::zeta(2, constant(x)).array().to_vector<double>();
    std::vector<float> rounded = of(x.astype(float32)).to_vector<float>();
    for (std::size_t k = 0; k < got.size(); ++k) {
      EXPECT_NEAR(got[k], want[k], 1e-13 * want[k]) << k;
      EXPECT_NEAR(rounded[k], want[k], 1e-6 * want[k]) << k;
    }
    Array below = xp::array({-0.25, -1.5, -7.125, -30.0625}).to(device);
    Array sine = F::sin(constant(below * kPi)).array();
    want = (kPi * kPi / (sine * sine) - of(1 - below)).to_vector<double>();
    got = of(below).to_vector<double>();
    for (std::size_t k = 0; k < got.size(); ++k) EXPECT_NEAR(got[k], want[k], 1e-12 * want[k]) << k;
    for (double pole : of(xp::array({0.0, -1.0, -20.0}).to(device)).to_vector<double>()) {
      EXPECT_EQ(pole, std::numeric_limits<double>::infinity());
    }
  }
}

// The rounding of an argument counts x * x times in what falls like exp(-x * x).
TEST(SpecialFunctions, ErrorFunctionsOverFloatAreThoseOverDouble) {
  using Function = Variable (*)(const Variable&);
  struct Case {
    const char* name;
    Function function;
    double least, greatest;
  };
  const Case cases[] = {{"erfc", F::erfc, -5, 9},
                        {"erfcx", F::erfcx, -9, 60},
                        {"ndtr", F::ndtr, -12, 6},
                        {"log_ndtr", F::log_ndtr, -60, 12}};
  for (Device device : testing::test_devices()) {
    for (const Case& c : cases) {
      constexpr std::int64_t kCount = 4099;  // the last ones are less than a vector
      Array x = xp::linspace(c.least, c.greatest, kCount).astype(float32).to(device);
      std::vector<float> at = x.to_vector<float>();
      std::vector<float> got = c.function(constant(x)).array().to_vector<float>();
      std::vector<double> want =
          c.function(constant(x.astype(float64))).array().to_vector<double>();
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t k = 0; k < got.size(); ++k) {
        EXPECT_NEAR(got[k], want[k], (8e-7 + 1.2e-7 * at[k] * at[k]) * std::abs(want[k]))
            << c.name << " of " << at[k];
      }
    }
  }
}

TEST(SpecialFunctions, ErrorFunctionsAtTheEdges) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  for (Device device : testing::test_devices()) {
    auto of = [&](auto function, std::vector<float> x) {
      return function(constant(xp::array(x).to(device))).array().template to_vector<float>();
    };
    EXPECT_EQ(of(F::erfc, {0, -0.0f, inf, -inf, 11, 1e30f, -1e30f}),
              (std::vector<float>{1, 1, 0, 2, 0, 0, 2}));
    EXPECT_EQ(of(F::erfcx, {0, inf, -inf, -10, -1e30f}), (std::vector<float>{1, 0, inf, inf, inf}));
    EXPECT_EQ(of(F::ndtr, {0, inf, -inf}), (std::vector<float>{0.5f, 1, 0}));
    EXPECT_EQ(of(F::log_ndtr, {inf, -inf}), (std::vector<float>{0, -inf}));
    EXPECT_NEAR(of(F::erfcx, {1e30f})[0], 5.6418958e-31, 1e-37);
    EXPECT_NEAR(of(F::erfc, {10})[0], 2.0884876e-45, 2e-45);  // less than any normal float
    for (auto function : {F::erfc, F::erfcx, F::ndtr, F::log_ndtr}) {
      EXPECT_TRUE(std::isnan(of(function, {NAN})[0]));
    }
  }
}

}  // namespace
}  // namespace rensa

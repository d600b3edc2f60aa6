// fmod and 1 / sqrt, which GPUs compute by steps of their own: the CPU's bits come of them.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "rensa/array/creation.h"
#include "rensa/array/ufuncs/arithmetic.h"
#include "rensa/array/ufuncs/powers.h"
#include "tests/testing.h"

namespace rensa {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<float> edges() {
  std::vector<float> values;
  for (float x :
       {0.0f, 1.0f, 1.5f, 3.0f, 0x1p-149f, 0x1.fffffcp-127f, 0x1p-126f, 0x1p-101f, 0x1.fffffep-102f,
        0x1p126f, 0x1.8p126f, 0x1.fffffep127f, 0x1.fffffep0f, 0x1.fffffcp1f, 0x1.fffffep1f, kInf}) {
    values.push_back(x);
    values.push_back(-x);
  }
  values.push_back(std::numeric_limits<float>::quiet_NaN());
  return values;
}

void expect_same(const Array& got, const std::vector<float>& want, const char* what) {
  std::vector<float> values = to_cpu(got).to_vector<float>();
  ASSERT_EQ(values.size(), want.size());
  std::size_t wrong = 0;
  for (std::size_t k = 0; k < want.size(); ++k) {
    bool same = std::bit_cast<std::uint32_t>(values[k]) == std::bit_cast<std::uint32_t>(want[k]) ||
                (std::isnan(values[k]) && std::isnan(want[k]));
    if (!same && ++wrong < 5) ADD_FAILURE() << what << " " << k << ": " << values[k] << want[k];
  }
  EXPECT_EQ(wrong, 0u) << what;
}

TEST(RealFunctors, FmodIsExact) {
  std::mt19937 random(1);
  std::vector<float> a, b, want;
  for (float x : edges()) {
    for (float y : edges()) a.push_back(x), b.push_back(y);
  }
  for (int i = 0; i < 200000; ++i) {
    std::uint32_t x = random(), y = random();
    // Most quotients are neither huge nor 0, and some of them next to whole numbers.
    int exponent = static_cast<int>(y >> 23 & 255) + static_cast<int>(random() % 32) - 4;
    if (i % 4 && 0 < exponent && exponent < 255) {
      x = (x & 0x807fffffu) | static_cast<std::uint32_t>(exponent) << 23;
    }
    float divisor = std::bit_cast<float>(y), dividend = std::bit_cast<float>(x);
    if (i % 4 == 3) dividend = divisor * static_cast<float>(random() % 5000000) * 0.5f;
    a.push_back(dividend), b.push_back(divisor);
  }
  for (std::size_t k = 0; k < a.size(); ++k) want.push_back(std::fmod(a[k], b[k]));
  for (Device device : testing::test_devices()) {
    expect_same(xp::fmod(xp::array(a).to(device), xp::array(b).to(device)), want, "fmod");
  }
}

TEST(RealFunctors, RsqrtIsOneBySqrt) {
  std::mt19937 random(2);
  std::vector<float> a = edges(), want;
  for (int i = 0; i < 200000; ++i) {
    std::uint32_t bits = random();
    a.push_back(std::bit_cast<float>(i % 4 ? bits & 0x7fffffffu : bits));
  }
  for (float x : a) want.push_back(1.0f / std::sqrt(x));
  for (Device device : testing::test_devices()) {
    expect_same(xp::rsqrt(xp::array(a).to(device)), want, "rsqrt");
  }
}

}  // namespace
}  // namespace rensa

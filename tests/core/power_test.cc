// float's power: how far off it is, C's rules for what is no number's power, and that kernels for
// every instruction set come to its bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "rensa/backend/cpu/kernels.h"
#include "rensa/core/functors.h"

namespace rensa {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// By how much of the last place's unit `value` is off.
double error_in_ulp(float value, double expected) {
  int exponent = 0;
  std::frexp(expected, &exponent);
  return std::abs(value - expected) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

float of_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }
double uniform(std::mt19937& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

struct Pairs {
  std::vector<float> base, exponent;

  void add(float a, float b) {
    base.push_back(a);
    exponent.push_back(b);
  }
  /// The exponent that makes about 2^log2 of `a`.
  void add_result(double a, double log2) {
    float base = static_cast<float>(a);
    if (base != 1) add(base, static_cast<float>(log2 / std::log2(static_cast<double>(base))));
  }
};

/// Bases of every size with results of every size, and where it is hardest: results near both ends
/// of bases near 1 and where the logarithm changes its way, sqrt(2/3) and sqrt(3/2).
Pairs normal_results(int n) {
  std::mt19937 random(1);
  Pairs pairs;
  for (int i = 0; i < n; ++i) {
    double log2 = uniform(random, -126, 127.9), end = i % 2 ? uniform(random, 124, 127.99) : -125.9;
    pairs.add_result(of_bits(1 + random() % 0x7f7fffffu), log2);
    pairs.add_result(1 + std::exp2(uniform(random, -24, -6)) * (i % 2 ? 1 : -1), log2);
    pairs.add_result(uniform(random, 0.5, 2), end);
    pairs.add_result(std::sqrt(i % 3 ? 2.0 / 3 : 1.5) * uniform(random, 0.99, 1.01), end);
  }
  return pairs;
}

/// Every pair of numbers with a rule of their own, and of some beside them.
Pairs special_pairs() {
  std::vector<float> values = {0,
                               0.5f,
                               1,
                               1.5f,
                               2,
                               3,
                               149,
                               1e30f,
                               0x1p-149f,
                               0x1p-126f,
                               8388607,
                               8388607.5f,
                               16777215,
                               16777216,
                               0x1.fffffep127f,
                               33554436,
                               0x1.fffffep-1f,
                               0x1.000002p0f,
                               kInf,
                               kNan};
  for (std::size_t i = 0, n = values.size(); i < n; ++i) values.push_back(-values[i]);
  Pairs pairs;
  for (float a : values) {
    for (float b : values) pairs.add(a, b);
  }
  return pairs;
}

TEST(Power, IsOffByLessThanAUnit) {
  Pairs pairs = normal_results(60000);
  double sum = 0;
  for (std::size_t i = 0; i < pairs.base.size(); ++i) {
    float a = pairs.base[i], b = pairs.exponent[i];
    double expected = std::pow(static_cast<double>(a), static_cast<double>(b));
    if (!(expected >= 0x1p-126 && expected < 0x1.fffffep127)) continue;
    double error = error_in_ulp(m::power::pow(a, b), expected);
    ASSERT_LT(error, 0.95) << a << " ** " << b;
    sum += error;
  }
  EXPECT_LT(sum / static_cast<double>(pairs.base.size()), 0.27);  // rounding alone: 0.25
}

TEST(Power, SubnormalResultsAndBases) {
  std::mt19937 random(2);
  Pairs pairs;
  for (int i = 0; i < 20000; ++i) {
    pairs.add_result(of_bits(1 + random() % 0x7f7fffffu), uniform(random, -149, -126));
    pairs.add_result(of_bits(1 + random() % 0x7fffffu), uniform(random, -149, 127));
  }
  for (std::size_t i = 0; i < pairs.base.size(); ++i) {
    float a = pairs.base[i], b = pairs.exponent[i];
    double expected = std::pow(static_cast<double>(a), static_cast<double>(b));
    ASSERT_LT(error_in_ulp(m::power::pow(a, b), expected), 0.95) << a << " ** " << b;
  }
}

TEST(Power, FollowsTheRulesOfC) {
  Pairs pairs = special_pairs();
  for (std::size_t i = 0; i < pairs.base.size(); ++i) {
    float a = pairs.base[i], b = pairs.exponent[i], power = m::power::pow(a, b);
    float expected = std::pow(a, b);
    EXPECT_EQ(std::isnan(power), std::isnan(expected)) << a << " ** " << b;
    if (std::isnan(expected)) continue;
    EXPECT_EQ(std::signbit(power), std::signbit(expected)) << a << " ** " << b;
    EXPECT_FLOAT_EQ(power, expected) << a << " ** " << b;
  }
}

// Of arrays of one kind and of mixed ones, which the kernels work on differently.
TEST(Power, EveryInstructionSetComesToTheSameBits) {
  using host::InstructionSet;
  Pairs normal = normal_results(2000), mixed = normal, special = special_pairs();
  for (std::size_t i = 0; i < special.base.size(); ++i) {
    mixed.base[i * 7 % mixed.base.size()] = special.base[i];
    mixed.exponent[i * 7 % mixed.base.size()] = special.exponent[i];
  }
  for (InstructionSet set : {InstructionSet::avx2, InstructionSet::avx512}) {
    if (set > host::best_instruction_set()) continue;
    auto kernel = host::make_kernel_table(set).of(ufunc::power, ComputeType::f32);
    for (const Pairs* pairs : {&normal, &mixed, &special}) {
      const void* in[2] = {pairs->base.data(), pairs->exponent.data()};
      std::vector<float> out(pairs->base.size());
      kernel(static_cast<std::int64_t>(out.size()), in, out.data(), 0);
      for (std::size_t i = 0; i < out.size(); ++i) {
        float a = pairs->base[i], b = pairs->exponent[i], expected = m::power::pow(a, b);
        if (std::isnan(expected) && std::isnan(out[i])) continue;
        ASSERT_EQ(std::bit_cast<std::uint32_t>(out[i]), std::bit_cast<std::uint32_t>(expected))
            << a << " ** " << b;
      }
    }
  }
}

}  // namespace
}  // namespace rensa

// The 16-bit floats: every value, and rounding at and beside every midpoint.
#include "rensa/core/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace rensa {
namespace {

double value_of_half(unsigned bits) {
  int exponent = static_cast<int>(bits >> 10 & 31), mantissa = static_cast<int>(bits & 1023);
  double magnitude = exponent == 31 ? (mantissa ? NAN : INFINITY)
                     : exponent     ? std::ldexp(1024 + mantissa, exponent - 25)
                                    : std::ldexp(mantissa, -24);
  return bits & 0x8000 ? -magnitude : magnitude;
}

template <class T> T from_bits(unsigned bits) {
  T value;
  value.bits = static_cast<unsigned short>(bits);
  return value;
}

TEST(Half, ReadsEveryValue) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    auto value = static_cast<float>(from_bits<half_t>(bits));
    double expected = value_of_half(bits);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value)) << bits;
    } else {
      ASSERT_EQ(value, expected) << bits;
      ASSERT_EQ(std::signbit(value), std::signbit(expected)) << bits;
      ASSERT_EQ(half_t(value).bits, bits);
    }
  }
}

// Between neighbours: the midpoint goes to the even one, anything beside it to the nearer.
template <class T> void check_rounding(unsigned last_finite) {
  for (unsigned bits = 0; bits < last_finite; ++bits) {
    float low = from_bits<T>(bits), high = from_bits<T>(bits + 1);
    float middle = low / 2 + high / 2;  // exact: the sum could overflow
    ASSERT_EQ(T(middle).bits, bits + (bits & 1)) << bits;
    ASSERT_EQ(T(std::nextafter(middle, 0.0f)).bits, bits) << bits;
    ASSERT_EQ(T(std::nextafter(middle, INFINITY)).bits, bits + 1) << bits;
    ASSERT_EQ(T(-middle).bits, (bits + (bits & 1)) | 0x8000) << bits;
  }
}

TEST(Half, RoundsToNearestEven) {
  check_rounding<half_t>(0x7bff);
  EXPECT_EQ(half_t(65519.99f).bits, 0x7bff);
  EXPECT_EQ(half_t(65520.0f).bits, 0x7c00);
  EXPECT_EQ(half_t(std::numeric_limits<float>::infinity()).bits, 0x7c00);
  EXPECT_TRUE(std::isnan(static_cast<float>(half_t(NAN))));
}

TEST(Bfloat16, RoundsToNearestEven) {
  // From the first value whose midpoint with its neighbour is a normal float.
  for (unsigned bits = 0x0100; bits < 0x7f7f; ++bits) {
    float low = from_bits<bfloat16_t>(bits), high = from_bits<bfloat16_t>(bits + 1);
    float middle = low / 2 + high / 2;
    ASSERT_EQ(bfloat16_t(low).bits, bits);
    ASSERT_EQ(bfloat16_t(middle).bits, bits + (bits & 1)) << bits;
    ASSERT_EQ(bfloat16_t(std::nextafter(middle, 0.0f)).bits, bits) << bits;
    ASSERT_EQ(bfloat16_t(std::nextafter(middle, INFINITY)).bits, bits + 1) << bits;
  }
  EXPECT_EQ(bfloat16_t(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_TRUE(std::isnan(static_cast<float>(bfloat16_t(NAN))));
}

}  // namespace
}  // namespace rensa

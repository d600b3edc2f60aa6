// Division by what is constant during a launch.
#include "rensa/portable/division.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace rensa {
namespace {

TEST(FastDiv, DividesAsIntegersDo) {
  constexpr std::int64_t kBeyond = std::int64_t{1} << 31;
  for (std::int64_t d : {std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, std::int64_t{7},
                         std::int64_t{641}, std::int64_t{65536}, kBeyond - 1, kBeyond, kBeyond + 1,
                         2 * kBeyond - 1, 2 * kBeyond, 2 * kBeyond + 1, 8 * kBeyond}) {
    FastDiv fast(d);
    for (std::int64_t n : {std::int64_t{0}, std::int64_t{1}, d - 1, d, d + 1, 5 * d + 2,
                           kBeyond / 2 + 1, kBeyond - 1}) {
      if (n >= kBeyond) continue;
      EXPECT_EQ(fast.divide(static_cast<unsigned>(n)), n / d) << n << " / " << d;
    }
  }
}

}  // namespace
}  // namespace rensa

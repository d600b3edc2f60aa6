// What operations ask of views before they read one and write the other.
#include "rensa/array/internal.h"

#include <gtest/gtest.h>

#include "rensa/array/routines.h"
#include "tests/testing.h"

namespace rensa {
namespace {

TEST(PartlyOverlap, IsToShareElementsAtOtherPlaces) {
  Array x = xp::arange(48, float32).reshape({4, 3, 4});
  auto overlap = [](const Array& a, const Array& b) {
    EXPECT_EQ(detail::partly_overlap(a.view(), b.view()),
              detail::partly_overlap(b.view(), a.view()));
    return detail::partly_overlap(a.view(), b.view());
  };
  auto last = [&](const Slice& which) { return x[{Slice(), Slice(), which}]; };
  EXPECT_FALSE(overlap(x, x));
  EXPECT_FALSE(overlap(x[0], x[1]));
  EXPECT_TRUE(overlap(x[{Slice(0, 2)}], x[{Slice(1, 3)}]));
  EXPECT_TRUE(overlap(x, x[{Slice(none, none, -1)}]));
  EXPECT_TRUE(overlap(x.swapaxes(0, 2), x.swapaxes(0, 2).swapaxes(1, 2)));
  // Between each other.
  EXPECT_FALSE(overlap(last(Slice(0, 1)), last(Slice(1, 2))));
  EXPECT_FALSE(overlap(last(Slice(3, 4)), last(Slice(0, 1))));
  EXPECT_FALSE(overlap(last(Slice(0, none, 2)), last(Slice(1, none, 2))));
  EXPECT_TRUE(overlap(last(Slice(0, 2)), last(Slice(1, 3))));
  EXPECT_TRUE(overlap(last(Slice(0, none, 2)), last(Slice(2, 3))));
  EXPECT_TRUE(overlap(last(Slice(1, 2)), x));
}

// Their elements are of other sizes: a half of each number, two of its bytes.
TEST(PartlyOverlap, CountsBytes) {
  Array x = xp::zeros({8}, float64), halves = x.view(float32);
  Array first = halves[{Slice(0, none, 2)}], second = halves[{Slice(1, none, 2)}];
  EXPECT_FALSE(detail::partly_overlap(first.view(), second.view()));
  EXPECT_TRUE(detail::partly_overlap(x.view(), second.view()));
  EXPECT_TRUE(detail::partly_overlap(second.view(), x.view()));
  second += 1.f, first += second;
  EXPECT_TRUE(xp::all(halves == 1.f).item<bool>());
}

}  // namespace
}  // namespace rensa

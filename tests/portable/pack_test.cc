// Packs of elements, whole and in part.
#include "rensa/portable/pack.h"

#include <gtest/gtest.h>

namespace rensa {
namespace {

TEST(Pack, MovesAsManyElementsAsItIsTold) {
  alignas(16) float from[8] = {0, 1, 2, 3, 4, 5, 6, 7}, to[8] = {};
  Pack<float, 4> pack;
  pack.fill(9);
  pack.load(reinterpret_cast<const char*>(from), 1, 2);  // 4 and 5
  pack.store(reinterpret_cast<char*>(to), 0, 4);
  pack.load(reinterpret_cast<const char*>(from), 0, 4);
  pack.store(reinterpret_cast<char*>(to), 1, 3);
  const float want[8] = {4, 5, 9, 9, 0, 1, 2, 0};
  for (int i = 0; i < 8; ++i) EXPECT_EQ(to[i], want[i]) << i;
  EXPECT_EQ(alignof(Pack<float, 4>), 16u);
}

}  // namespace
}  // namespace rensa

// Philox against the known answers of Random123 (kat_vectors, philox4x32 with 10 rounds).
#include "rensa/core/philox.h"

#include <gtest/gtest.h>

namespace rensa {
namespace {

TEST(Philox, KnownAnswerOfZeros) {
  PhiloxWords w = philox(0, 0);
  EXPECT_EQ(w.word[0], 0x6627e8d5u);
  EXPECT_EQ(w.word[1], 0xe169c58du);
  EXPECT_EQ(w.word[2], 0xbc57ac4cu);
  EXPECT_EQ(w.word[3], 0x9b00dbd8u);
}

TEST(Philox, UniformsStayBelowOne) {
  EXPECT_EQ(uniform_float(0), 0.0f);
  EXPECT_EQ(uniform_float(~0u), 1.0f - 0x1p-24f);
  EXPECT_EQ(uniform_double(0, 0), 0.0);
  EXPECT_EQ(uniform_double(~0u, ~0u), 1.0 - 0x1p-53);
}

}  // namespace
}  // namespace rensa

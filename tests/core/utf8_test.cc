// UTF-8: what is kept, and what becomes U+FFFD.
#include "rensa/core/utf8.h"

#include "tests/testing.h"

namespace rensa {
namespace {

TEST(Utf8, WhatIsValidStays) {
  for (const char* text : {"", "plain", "\u00e9\u20ac\U0001F600", "\uD7FF\uE000\U0010FFFF"}) {
    EXPECT_EQ(valid_utf8(text), text);
  }
}

TEST(Utf8, WhatIsNotIsReplacedByteByByte) {
  EXPECT_EQ(valid_utf8("a\xff"), "a\uFFFD");
  EXPECT_EQ(valid_utf8("\xe2\x82z"), "\uFFFD\uFFFDz");                    // cut off
  EXPECT_EQ(valid_utf8("\xc0\x80"), "\uFFFD\uFFFD");                      // overlong
  EXPECT_EQ(valid_utf8("\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD");            // a surrogate
  EXPECT_EQ(valid_utf8("\xf4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");  // past U+10FFFF
}

}  // namespace
}  // namespace rensa

// Columns of text.
#include "rensa/core/text_table.h"

#include <gtest/gtest.h>

namespace rensa {
namespace {

TEST(TextTable, ColumnsAreAsWideAsTheirLongestCell) {
  EXPECT_EQ(text_table({{"name", "n", ""}, {"a", "100", "x"}, {"longest"}}, "<><"),
            "name       n\n"
            "a        100  x\n"
            "longest");
  EXPECT_EQ(text_table({}, "<"), "");
}

}  // namespace
}  // namespace rensa

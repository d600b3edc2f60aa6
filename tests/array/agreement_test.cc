// What the ranks of a group say alike.
#include "rensa/array/agreement.h"

#include <gmock/gmock.h>

#include "rensa/core/error.h"
#include "tests/ranks.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Agreement, NamesTheFirstLineThatDiffers) {
  struct Case {
    const char *first, *other, *said;
  };
  for (const Case& texts : {Case{"a\nb\nc", "a\nx\nc", "has b where"},
                            {"a", "a\nb\n", "has nothing where"},
                            {"a\nb", "a", "has b where"},
                            {"", "a", "has nothing where"}}) {
    testing::run_ranks(3, [&](const Communicator& c) {
      auto check = [&] {
        check_agreement(c, "a check", c.rank() == 2 ? texts.other : texts.first, "say the same");
      };
      EXPECT_THAT(testing::thrown<ValueError>(check),
                  AllOf(HasSubstr("a check: rank 0"), HasSubstr(texts.said), HasSubstr("rank 2"),
                        HasSubstr("; say the same")));
    });
  }
  testing::run_ranks(2, [](const Communicator& c) {
    EXPECT_NO_THROW(check_agreement(c, "a check", c.rank() == 0 ? "a\nb" : "a\nb\n", ""));
  });
}

TEST(Agreement, WhatOneRankFailsAt) {
  testing::run_ranks(2, [](const Communicator& c) {
    auto make = [&] {
      return detail::bytes_of_root<ValueError>(c, 1, [] { return "of the root"; });
    };
    EXPECT_EQ(make(), "of the root");
    auto fail = [&] {
      detail::bytes_of_root<ValueError>(c, 1,
                                        []() -> std::string { throw IndexError("the root"); });
    };
    EXPECT_EQ(c.rank() == 1 ? testing::thrown<IndexError>(fail) : testing::thrown<ValueError>(fail),
              "the root");
    EXPECT_EQ(make(), "of the root");  // the group goes on
  });
}

}  // namespace
}  // namespace rensa

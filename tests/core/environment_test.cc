// The reader of RENSA_* variables, and the variables that a process reads once.
#include "rensa/core/environment.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_pool.h"
#include "rensa/device/pool_options.h"
#include "tests/array/arrays.h"
#include "tests/environment.h"

namespace rensa {
namespace {

using ::testing::HasSubstr;

constexpr const char* kName = "RENSA_TEST_VARIABLE";

using testing::EnvironmentScope;

TEST(Environment, WhatIsNotSetIsNothing) {
  EXPECT_EQ(environment::text(kName), std::nullopt);
  EXPECT_EQ(environment::number(kName, 0, 9), std::nullopt);
  EXPECT_EQ(environment::flag(kName), std::nullopt);
  EXPECT_EQ(environment::word(kName, {"on", "off"}), std::nullopt);
  EXPECT_FALSE(environment::is_empty(kName));
  EnvironmentScope empty(kName, "");
  EXPECT_EQ(environment::text(kName), std::nullopt);
  EXPECT_EQ(environment::number(kName, 0, 9), std::nullopt);
  EXPECT_TRUE(environment::is_empty(kName));
}

TEST(Environment, ReadsItsKinds) {
  EXPECT_EQ((EnvironmentScope(kName, "a b/c"), environment::text(kName)), "a b/c");
  EXPECT_EQ(
      (EnvironmentScope(kName, "18446744073709551615"), environment::number(kName, 0, UINT64_MAX)),
      UINT64_MAX);
  EXPECT_EQ((EnvironmentScope(kName, "1"), environment::flag(kName)), true);
  EXPECT_EQ((EnvironmentScope(kName, "0"), environment::flag(kName)), false);
  EXPECT_EQ((EnvironmentScope(kName, "off"), environment::word(kName, {"on", "off"})), 1);
}

TEST(Environment, RefusesTheRestByName) {
  for (const char* bad :
       {"-1", "+1", " 1", "1 ", "0x1", "1.0", "ten", "11", "", "99999999999999999999999"}) {
    EnvironmentScope set(kName, bad);
    if (!*bad) continue;
    EXPECT_THAT(testing::thrown<ValueError>([] { environment::number(kName, 1, 10); }),
                HasSubstr("RENSA_TEST_VARIABLE=\"" + std::string(bad) +
                          "\": this variable takes an integer from 1 to 10"));
  }
  for (const char* bad : {"yes", "true", "2", "01", "on"}) {
    EnvironmentScope set(kName, bad);
    EXPECT_THAT(testing::thrown<ValueError>([] { environment::flag(kName); }),
                HasSubstr("takes 0 or 1"));
  }
  for (const char* bad : {"banana", "OFF", "of", "offf", "1"}) {
    EnvironmentScope set(kName, bad);
    EXPECT_THAT(testing::thrown<ValueError>([] {
                  environment::word(kName, {"on", "off"});
                }),
                HasSubstr("takes on or off"));
  }
}

// Each in a process of its own, which has read nothing yet: what is called says what is wrong.
struct Garbage {
  const char *variable, *value;
  void (*use)();
};

class EnvironmentDeathTest : public ::testing::TestWithParam<Garbage> {};

void ask_pool() { pool_off(); }
void draw_number() { xp::random::random({1}, float32, cpu()); }
void ask_threads() { get_num_threads(); }
void ask_poison() { pool_poison(); }

INSTANTIATE_TEST_SUITE_P(
    Variables, EnvironmentDeathTest,
    ::testing::Values(Garbage{"RENSA_SEED", "99999999999999999999999", draw_number},
                      Garbage{"RENSA_SEED", "-1", draw_number},
                      Garbage{"RENSA_SEED", "12abc", draw_number},
                      Garbage{"RENSA_POOL", "banana", ask_pool},
                      Garbage{"RENSA_POOL_POISON", "yes", ask_poison},
                      Garbage{"RENSA_NUM_THREADS", "0", ask_threads},
                      Garbage{"RENSA_NUM_THREADS", "1e3", ask_threads}),
    [](const auto& info) { return std::string(info.param.variable) + std::to_string(info.index); });

TEST_P(EnvironmentDeathTest, GarbageIsAnErrorThatNamesIt) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  auto program = [] {
    setenv(GetParam().variable, GetParam().value, 1);
    try {
      GetParam().use();
    } catch (const ValueError& error) {
      std::fputs(error.what(), stderr);
      std::exit(7);
    }
    std::exit(0);
  };
  EXPECT_EXIT(
      program(), ::testing::ExitedWithCode(7),
      std::string(GetParam().variable) + "=\"" + GetParam().value + "\": this variable takes");
}

}  // namespace
}  // namespace rensa

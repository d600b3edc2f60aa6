// The order that a list needs, against all pairs of its operations.
#include "rensa/graph/precedence.h"

#include <gtest/gtest.h>

#include "tests/graph/random_uses.h"

namespace rensa {
namespace {

using Uses = std::vector<std::vector<Access>>;

TEST(Precedence, EqualsThatOfAllPairs) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Uses uses = testing::random_uses(seed, 150);
    testing::AllPairs want(uses);
    Precedence precedence(uses, true);
    EXPECT_EQ(precedence.direct(), want.direct);
    precedence.for_each([&](int i, const OperationSet& before) {
      for (int j = 0; j < i; ++j) EXPECT_EQ(before.contains(j), want.is_before(j, i)) << j << i;
    });
  }
}

TEST(Precedence, WithoutBranchesAllThatCameIsDone) {
  Precedence precedence(testing::random_uses(1, 200), false);
  EXPECT_TRUE(precedence.direct()[0].empty());
  precedence.for_each([&](int i, const OperationSet& before) {
    if (i > 0) {
      EXPECT_EQ(precedence.direct()[static_cast<std::size_t>(i)], std::vector<int>{i - 1});
    }
    for (int j = 0; j < i; ++j) EXPECT_TRUE(before.contains(j));
  });
}

TEST(Precedence, ReadersStandBesideOneAnother) {
  char bytes[100];
  Access written{nullptr, bytes, bytes + 100, true}, read{nullptr, bytes, bytes + 100, false};
  Access head{nullptr, bytes, bytes + 50, true}, tail{nullptr, bytes + 50, bytes + 100, true};
  Precedence precedence({{written}, {read}, {read}, {head}, {tail}, {read, written}}, true);
  EXPECT_EQ(precedence.direct(),
            (std::vector<std::vector<int>>{{}, {0}, {0}, {2, 1}, {2, 1}, {4, 3}}));
}

TEST(Precedence, OperationsOfALaneFollowOneAnother) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Uses uses = testing::random_uses(seed, 150);
    testing::AllPairs pairs(uses);
    std::vector<std::size_t> lanes = Precedence(uses, true).lanes();
    for (int i = 0; i < 150; ++i) {
      for (int j = 0; j < i; ++j) {
        bool together = lanes[static_cast<std::size_t>(i)] == lanes[static_cast<std::size_t>(j)];
        EXPECT_TRUE(!together || pairs.is_before(j, i)) << seed << ": " << j << ", " << i;
      }
    }
  }
  Precedence line(testing::random_uses(1, 50), false);
  EXPECT_EQ(line.lanes(), std::vector<std::size_t>(50, 0));
}

TEST(Precedence, NarrowedIsTheSameOrderAndMore) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    Uses uses = testing::random_uses(seed, 150);
    testing::AllPairs pairs(uses);
    Precedence precedence(uses, true);
    precedence.narrowed(3).for_each([&](int i, const OperationSet& before) {
      for (int j = 0; j < i; ++j) EXPECT_TRUE(before.contains(j) || !pairs.is_before(j, i));
    });
    EXPECT_EQ(precedence.narrowed(1).direct(), Precedence(uses, false).direct());
    EXPECT_EQ(precedence.narrowed(150).direct(), precedence.direct());
  }
}

// Three of ten chains of five at a time, each next one behind the end of another.
TEST(Precedence, NarrowedLeavesChainsWhole) {
  Uses uses;
  for (std::size_t chain = 0; chain < 10; ++chain) {
    for (std::size_t k = 0; k < 5; ++k) {
      std::size_t number = 5 * chain + k;
      uses.push_back({{testing::storage_number(number), testing::memory_number(number),
                       testing::memory_number(number) + 8, true}});
      if (k == 0) continue;
      uses.back().push_back({testing::storage_number(number - 1),
                             testing::memory_number(number - 1),
                             testing::memory_number(number - 1) + 8, false});
    }
  }
  Precedence narrowed = Precedence(uses, true).narrowed(3);
  for (int i = 0; i < 50; ++i) {
    std::vector<int> want;
    if (i % 5 != 0) want = {i - 1};
    else if (i >= 15) want = {i - 11};
    EXPECT_EQ(narrowed.direct()[static_cast<std::size_t>(i)], want) << i;
  }
}

// On each of two devices one at a time; what goes between them waits for what it reads alone.
TEST(Precedence, NarrowedOnEachDevice) {
  constexpr int kBetween = -1;
  Uses uses;
  auto use = [&](std::size_t number, bool write) -> Access {
    return {testing::storage_number(number), testing::memory_number(number),
            testing::memory_number(number) + 8, write};
  };
  for (std::size_t i = 0; i < 6; ++i) uses.push_back({use(i, true)});
  uses.push_back({use(1, false), use(4, false), use(6, true)});
  uses.push_back({use(6, false), use(7, true)});
  Precedence narrowed = Precedence(uses, true).narrowed(1, {0, 0, 0, 1, 1, 1, kBetween, 0});
  EXPECT_EQ(narrowed.direct(),
            (std::vector<std::vector<int>>{{}, {0}, {1}, {}, {3}, {4}, {4, 1}, {6, 2}}));
}

TEST(OperationSet, CommonOperations) {
  OperationSet few(70), all(200);
  for (int i : {0, 5, 63, 64, 69}) few.insert(i);
  for (int i : {5, 64, 69, 199}) all.insert(i);
  few.remove(69);
  EXPECT_EQ(few.common(all), (std::vector<int>{5, 64}));
  few.intersect(all);
  EXPECT_FALSE(few.contains(0));
  all.merge(few);
  EXPECT_EQ(all.common(all), (std::vector<int>{5, 64, 69, 199}));
}

}  // namespace
}  // namespace rensa

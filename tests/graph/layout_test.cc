// Layouts of made-up lists against a planner that compares all pairs of blocks.
#include "rensa/graph/layout.h"

#include <gtest/gtest.h>

#include <unordered_map>

#include "tests/graph/random_uses.h"

namespace rensa {
namespace {

std::vector<Block> blocks_of(const testing::Uses& uses) {
  std::vector<Block> blocks;
  std::unordered_map<Storage*, std::size_t> block_of;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    for (const Access& use : uses[i]) {
      auto [found, is_new] = block_of.try_emplace(use.storage, blocks.size());
      std::size_t units = 1 + testing::number_of(use.storage) % 7;
      if (is_new) blocks.push_back({static_cast<std::int64_t>(512 * units), {}});
      std::vector<int>& users = blocks[found->second].users;
      if (users.empty() || users.back() != static_cast<int>(i))
        users.push_back(static_cast<int>(i));
    }
  }
  return blocks;
}

/// Whether every use of `a` comes before every one of `b`.
template <class IsBefore> bool done_before(const Block& a, const Block& b, IsBefore&& is_before) {
  return std::ranges::all_of(b.users, [&](int later) {
    return std::ranges::all_of(a.users, [&](int user) { return is_before(user, later); });
  });
}

/// The first fit, block by block, each compared with all that are placed.
template <class IsBefore>
std::int64_t place_by_pairs(std::vector<Block>& blocks, IsBefore&& is_before) {
  std::int64_t total = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    std::vector<std::pair<std::int64_t, std::int64_t>> taken;
    for (std::size_t j = 0; j < i; ++j) {
      if (done_before(blocks[j], blocks[i], is_before)) continue;
      taken.emplace_back(blocks[j].offset, blocks[j].offset + blocks[j].bytes);
    }
    std::ranges::sort(taken);
    std::int64_t offset = 0;
    for (auto [begin, end] : taken) {
      if (offset + blocks[i].bytes <= begin) break;
      offset = std::max(offset, end);
    }
    blocks[i].offset = offset;
    total = std::max(total, offset + blocks[i].bytes);
  }
  return total;
}

template <class IsBefore>
void expect_apart(const std::vector<Block>& blocks, IsBefore&& is_before) {
  for (const Block& a : blocks) {
    for (const Block& b : blocks) {
      bool share = &a != &b && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
      EXPECT_TRUE(!share || done_before(a, b, is_before) || done_before(b, a, is_before))
          << "blocks at " << a.offset << " and " << b.offset;
    }
  }
}

std::vector<std::int64_t> offsets(const std::vector<Block>& blocks) {
  std::vector<std::int64_t> result;
  for (const Block& block : blocks) result.push_back(block.offset);
  return result;
}

/// Calls f(blocks, precedence, is_before) for random lists, with branches and without.
template <class F> void for_random_lists(F&& f) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    testing::Uses uses = testing::random_uses(seed, 150);
    testing::AllPairs pairs(uses);
    for (bool branches : {true, false}) {
      f(blocks_of(uses), Precedence(uses, branches),
        [&](int j, int i) { return branches ? pairs.is_before(j, i) : j < i; });
    }
  }
}

TEST(Layout, EqualsTheFirstFitOfAllPairs) {
  for_random_lists([](std::vector<Block> blocks, const Precedence& precedence, auto&& is_before) {
    std::vector<Block> want = blocks;
    std::int64_t bytes = place_blocks(blocks, precedence);
    EXPECT_EQ(bytes, place_by_pairs(want, is_before));
    EXPECT_EQ(offsets(blocks), offsets(want));
    expect_apart(blocks, is_before);
  });
}

TEST(Layout, WithTheLargestFirstNoTwoInUseShare) {
  std::int64_t first_fit = 0, largest_first = 0;
  for_random_lists([&](std::vector<Block> blocks, const Precedence& precedence, auto&& is_before) {
    first_fit += place_blocks(blocks, precedence);
    std::int64_t bytes = place_largest_first(blocks, precedence), end = 0;
    for (const Block& block : blocks) end = std::max(end, block.offset + block.bytes);
    EXPECT_EQ(bytes, end);
    expect_apart(blocks, is_before);
    largest_first += bytes;
  });
  EXPECT_LT(largest_first, first_fit);
}

// Forward makes blocks that backward uses in the opposite order, each with one of its own.
TEST(Layout, OfALongListTakesWhatIsInUseAtOnce) {
  constexpr int kSteps = 10000;
  constexpr std::int64_t kBytes = 1024;
  testing::Uses uses(2 * kSteps);
  auto use = [](std::size_t k, bool write) {
    return Access{testing::storage_number(k), testing::memory_number(k),
                  testing::memory_number(k) + 4096, write};
  };
  for (std::size_t i = 0; i < uses.size(); ++i) {
    uses[i].push_back(use(i, true));
    if (i > 0) uses[i].push_back(use(i - 1, false));
    if (i >= kSteps) uses[i].push_back(use(2 * kSteps - 1 - i, false));
  }
  std::vector<Block> blocks = blocks_of(uses);
  for (Block& block : blocks) block.bytes = kBytes;
  for (bool branches : {true, false}) {
    EXPECT_EQ(place_blocks(blocks, Precedence(uses, branches)), (kSteps + 1) * kBytes);
  }
}

// Two chains side by side: a piece of the one may not go to the other, which may run at that time.
TEST(Layout, ChainsSideBySideHaveMemoryOfTheirOwn) {
  constexpr std::size_t kLength = 3000;
  testing::Uses uses;
  std::vector<Block> blocks(2 * kLength, Block{512, {}});
  for (std::size_t i = 0; i < 2 * kLength; ++i) {
    auto use = [&](std::size_t k, bool write) {
      uses.back().push_back({testing::storage_number(k), testing::memory_number(k),
                             testing::memory_number(k) + 4096, write});
      blocks[k].users.push_back(static_cast<int>(i));
    };
    uses.emplace_back();
    use(i, true);
    if (i >= 2) use(i - 2, false);
  }
  EXPECT_EQ(place_blocks(blocks, Precedence(uses, true)), 4 * 512);
  EXPECT_EQ(place_blocks(blocks, Precedence(uses, false)), 3 * 512);
}

}  // namespace
}  // namespace rensa

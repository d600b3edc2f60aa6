// Sorting by vector instructions against std::sort.
#include "rensa/operations/sort/cpu_wide_sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace rensa::host {
namespace {

template <class Key> void check_sorts() {
  std::mt19937_64 random(3);
  for (int round = 0; round < 600; ++round) {
    auto n = static_cast<std::int64_t>(random() % (round % 50 == 0  ? 100000
                                                   : round % 4 == 0 ? 5000
                                                                    : 600));
    Key span = round % 5 == 0 ? 1 : round % 5 == 1 ? 5 : round % 5 == 2 ? 300 : Key(~Key(0));
    std::vector<Key> keys(static_cast<std::size_t>(n));
    for (Key& key : keys) {
      key = static_cast<Key>(random()) % span;
      if (round % 3 == 0 && random() % 3 == 0) key = Key(~Key(0));  // what short vectors end in
    }
    std::vector<Key> want = keys, selected = keys;
    std::sort(want.begin(), want.end());
    sort_wide(keys.data(), n);
    ASSERT_EQ(keys, want) << n;
    if (n == 0) continue;
    auto kth = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
    select_wide(selected.data(), n, kth);
    auto at = selected.begin() + kth;
    ASSERT_EQ(*at, want[static_cast<std::size_t>(kth)]);
    ASSERT_LE(*std::max_element(selected.begin(), at + 1), *at);
    ASSERT_GE(*std::min_element(at, selected.end()), *at);
    std::sort(selected.begin(), selected.end());
    ASSERT_EQ(selected, want);
  }
}

TEST(WideSort, SortsAndSelects) {
  if (!has_wide_sort()) GTEST_SKIP() << "needs AVX-512";
  check_sorts<unsigned>();
  check_sorts<unsigned long long>();
}

}  // namespace
}  // namespace rensa::host

// Sorting by vector instructions against std::sort.
#include "rensa/operations/sort/cpu_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace rensa::host {
namespace {

template <class Key> void check_sorts(const KeySorting<Key>& kernels) {
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
    kernels.sort(keys.data(), n);
    ASSERT_EQ(keys, want) << n;
    if (n == 0) continue;
    auto kth = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
    kernels.select(selected.data(), n, kth);
    auto at = selected.begin() + kth;
    ASSERT_EQ(*at, want[static_cast<std::size_t>(kth)]);
    ASSERT_LE(*std::max_element(selected.begin(), at + 1), *at);
    ASSERT_GE(*std::min_element(at, selected.end()), *at);
    std::sort(selected.begin(), selected.end());
    ASSERT_EQ(selected, want);
  }
}

TEST(SortKernels, SortAndSelect) {
  const SortKernels& kernels = sort_kernels();
  if (!kernels.narrow.sort) GTEST_SKIP() << "needs AVX-512";
  check_sorts(kernels.narrow);
  check_sorts(kernels.wide);
}

// Keys of each set are those of the baseline, and give the elements back.
TEST(SortKernels, KeysOfEveryInstructionSetAreTheSame) {
  std::mt19937_64 random(4);
  std::vector<std::uint64_t> memory(133), keys(133), want(133), back(133);
  for (auto& word : memory) word = random();
  for (int set = 0; set <= static_cast<int>(best_instruction_set()); ++set) {
    SortKernels kernels = RENSA_IN_SET(static_cast<InstructionSet>(set), get_sort_kernels)();
    SortKernels baseline = baseline::get_sort_kernels();
    for (Dtype dtype : {int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16,
                        float32, float64}) {
      auto d = static_cast<int>(dtype);
      auto n = static_cast<std::int64_t>(8 * memory.size()) / itemsize(dtype);
      for (bool descending : {false, true}) {
        kernels.to_keys[d](n, memory.data(), descending, false, keys.data());
        baseline.to_keys[d](n, memory.data(), descending, false, want.data());
        ASSERT_EQ(keys, want) << dtype_name(dtype);
        kernels.to_elements[d](n, keys.data(), descending, back.data());
        kernels.to_keys[d](n, back.data(), descending, false, back.data());  // NaNs are one
        ASSERT_EQ(back, keys) << dtype_name(dtype);
      }
    }
  }
}

}  // namespace
}  // namespace rensa::host

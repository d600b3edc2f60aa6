// Lists of accesses to try planners with, and what all pairs of their operations say.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "rensa/graph/recording.h"

namespace rensa::testing {

using Uses = std::vector<std::vector<Access>>;

/// The memory of storage `k` of a made-up list, up to 4096 bytes; there is nothing behind it.
inline const char* memory_number(std::size_t k) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return reinterpret_cast<const char*>(std::uintptr_t{1} << 40) + k * 4096;
}
inline Storage* storage_number(std::size_t k) {
  return reinterpret_cast<Storage*>(const_cast<char*>(memory_number(k)));
}
inline std::size_t number_of(const Storage* storage) {
  return (reinterpret_cast<std::uintptr_t>(storage) - (std::uintptr_t{1} << 40)) / 4096;
}

/// `length` operations that write memory nobody has written yet or something they change, whole or
/// a part of it, and read some of what there is, more often what is new.
inline Uses random_uses(unsigned seed, std::size_t length) {
  std::mt19937 random(seed);
  auto below = [&](std::size_t n) { return random() % n; };
  std::size_t recent = 2 + below(30), storages = 1;
  auto any = [&] { return storages - 1 - below(std::min(below(8) ? recent : storages, storages)); };
  auto access = [&](std::size_t k, bool write) {
    std::size_t size = 256 * (1 + k * k % 13), begin = 0, end = size;
    if (below(4) == 0) begin = below(size), end = begin + 1 + below(size - begin);
    return Access{storage_number(k), memory_number(k) + begin, memory_number(k) + end, write};
  };
  Uses uses;
  while (uses.size() < length) {
    std::vector<Access> of_one;
    for (std::size_t reads = below(4); reads-- > 0;) of_one.push_back(access(any(), false));
    bool in_place = below(4) == 0;
    of_one.push_back(access(in_place ? any() : storages++, true));
    uses.push_back(of_one);
  }
  return uses;
}

/// The order of a list by comparing each operation with each.
struct AllPairs {
  explicit AllPairs(const Uses& uses)
      : direct(uses.size()), before(uses.size(), std::vector<bool>(uses.size(), false)) {
    for (std::size_t i = 0; i < uses.size(); ++i) {
      for (std::size_t j = i; j-- > 0;) {
        if (before[i][j] || !conflict(uses[i], uses[j])) continue;
        direct[i].push_back(static_cast<int>(j));
        before[i][j] = true;
        for (std::size_t k = 0; k < j; ++k) before[i][k] = before[i][k] || before[j][k];
      }
    }
  }

  static bool conflict(const std::vector<Access>& a, const std::vector<Access>& b) {
    for (const Access& x : a) {
      for (const Access& y : b) {
        if ((x.write || y.write) && x.begin < y.end && y.begin < x.end) return true;
      }
    }
    return false;
  }
  bool is_before(int j, int i) const {
    return before[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
  }

  std::vector<std::vector<int>> direct;   // the latest first, without what others imply
  std::vector<std::vector<bool>> before;  // before[i][j]: j is done before i starts
};

}  // namespace rensa::testing

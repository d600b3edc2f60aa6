// Sorting and selection on the CPU: the kernels of operations/sort/cpu_kernels.cc in one thread
// beside Highway's vqsort and the standard library, then xp::sort with all threads beside a copy
// that is sorted by vqsort, which has one. Microseconds.
#include <hwy/contrib/sort/vqsort.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "benchmarks/libraries/fastest.h"
#include "benchmarks/timing.h"
#include "rensa/array.h"
#include "rensa/operations/sort/cpu_kernels.h"

namespace {

using namespace rensa;

/// Of uniform keys, or of few that differ.
template <class Key> std::vector<Key> keys_of(std::int64_t n, bool few) {
  std::mt19937_64 random(5);
  std::vector<Key> keys(static_cast<std::size_t>(n));
  for (Key& key : keys) key = static_cast<Key>(few ? random() % 100 : random());
  return keys;
}

/// What `sort` is given is a fresh copy each time, whose
/// making is taken off.
template <class Key, class F>
void print(const std::string& work, const char* who, const std::vector<Key>& keys, const F& sort) {
  std::vector<Key> copy(keys.size());
  auto fill = [&] { std::memcpy(copy.data(), keys.data(), keys.size() * sizeof(Key)); };
  double both = benchmarks::fastest_seconds([&] { fill(), sort(copy.data()); });
  double filling = benchmarks::fastest_seconds(fill);
  benchmarks::print_figure("sort: " + work + " " + who, (both - filling) * 1e6, "us");
}

template <class Key, class Theirs>
void kernels(const char* type, const char* what, const hwy::Sorter& sorter, std::int64_t n,
             bool few) {
  std::vector<Key> keys = keys_of<Key>(n, few);
  auto count = static_cast<std::size_t>(n);
  std::string work = std::to_string(n) + " " + type + what + ", one thread";
  const auto& ours = host::sort_kernels();
  if constexpr (sizeof(Key) == 4) {
    if (ours.narrow.sort) print(work, "rensa", keys, [&](Key* k) { ours.narrow.sort(k, n); });
  } else if (ours.wide.sort) {
    print(work, "rensa", keys,
          [&](Key* k) { ours.wide.sort(reinterpret_cast<unsigned long long*>(k), n); });
  }
  print(work, "vqsort", keys,
        [&](Key* k) { sorter(reinterpret_cast<Theirs*>(k), count, hwy::SortAscending()); });
  print(work, "std", keys, [&](Key* k) { std::sort(k, k + n); });
}

template <class T> void arrays(const char* type, const hwy::Sorter& sorter, std::int64_t n) {
  Array x = xp::random::normal(0, 1, {n}, dtype_of<T>, cpu()), out = xp::empty_like(x);
  std::string work = "xp::sort, " + std::to_string(n) + " " + type;
  auto* theirs = static_cast<T*>(out.data());
  auto time = [&](const char* who, const auto& call) {
    double seconds = benchmarks::fastest_seconds(call);
    benchmarks::print_figure("sort: " + work + " " + who, seconds * 1e6, "us");
  };
  time("rensa", [&] { (void)xp::sort(x); });
  time("vqsort", [&] {
    std::memcpy(theirs, x.data(), static_cast<std::size_t>(x.nbytes()));
    sorter(theirs, static_cast<std::size_t>(n), hwy::SortAscending());
  });
}

}  // namespace

int main() {
  xp::random::seed(1);
  hwy::Sorter sorter;
  for (std::int64_t n : {30, 300, 3000, 30'000, 300'000, 3'000'000}) {
    kernels<unsigned, std::uint32_t>("uint32", "", sorter, n, false);
    kernels<unsigned long long, std::uint64_t>("uint64", "", sorter, n, false);
  }
  kernels<unsigned, std::uint32_t>("uint32", ", a hundred different", sorter, 300'000, true);
  for (std::int64_t n : {300, 30'000, 3'000'000}) {
    arrays<float>("float32", sorter, n);
    arrays<double>("float64", sorter, n);
  }
  return 0;
}

// What comes and goes again and again leaves nothing of the system's behind.
#pragma once

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iterator>
#include <thread>

#include "rensa/core/environment.h"

namespace rensa::testing {

/// How many there are in a folder, this process's threads or descriptors.
inline std::int64_t count_in(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder),
                       std::filesystem::directory_iterator());
}

/// This process's threads, without those that have been joined and are there for a moment more:
/// the fewest within a while.
inline std::int64_t count_threads() {
  std::int64_t fewest = count_in("/proc/self/task");
  for (int tries = 0; tries < 50; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    fewest = std::min(fewest, count_in("/proc/self/task"));
  }
  return fewest;
}

/// Of the heap, in bytes: what is not free. Sanitizers have a heap of their own, of which this
/// knows nothing.
inline std::int64_t heap_in_use() {
  struct mallinfo2 heap = ::mallinfo2();
  return static_cast<std::int64_t>(heap.uordblks + heap.hblkhd);
}

/// Calls cycle(0), cycle(1) and so on; threads, descriptors and the heap are then what they were
/// after the first few. RENSA_TEST_CYCLES=1000 for a long run.
inline void expect_nothing_is_left(const std::function<void(int)>& cycle) {
  constexpr int kFirst = 10;  // until caches have what they keep
  constexpr std::int64_t kNoise = 32 << 10;
  auto cycles = static_cast<int>(environment::number("RENSA_TEST_CYCLES", 1, 1000000).value_or(50));
  int done = 0;
  auto grown = [&](int count) {
    std::int64_t heap = heap_in_use();
    for (int i = 0; i < count; ++i) cycle(done++);
    return heap_in_use() - heap;
  };
  grown(kFirst);
  std::int64_t threads = count_threads(), descriptors = count_in("/proc/self/fd");
  std::int64_t bytes = grown(cycles);
  // What threads of a busy machine keep for later comes once, what is lost comes again.
  if (bytes >= kNoise) bytes = grown(cycles);
  // Where the machine has much to do, one that has been joined is there for longer.
  for (int tries = 0; count_in("/proc/self/task") > threads && tries < 1000; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(count_threads(), threads);
  EXPECT_EQ(count_in("/proc/self/fd"), descriptors);
  EXPECT_LT(bytes, kNoise) << "bytes after " << cycles << " cycles";
}

}  // namespace rensa::testing

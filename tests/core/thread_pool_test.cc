// The thread pool: every piece once, exceptions, nesting, callers on many threads.
#include "rensa/core/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "tests/environment.h"
#include "tests/num_threads.h"

namespace rensa {
namespace {

using testing::NumThreads;

TEST(ParallelFor, CutsAtMultiplesOfTheGrain) {
  for (int threads : {1, 2, 5}) {
    NumThreads scope(threads);
    for (std::int64_t n : {0, 1, 9, 10, 11, 95, 1000}) {
      std::mutex mutex;
      std::set<std::pair<std::int64_t, std::int64_t>> pieces;
      parallel_for(n, 10, [&](std::int64_t begin, std::int64_t end) {
        std::lock_guard lock(mutex);
        EXPECT_TRUE(pieces.insert({begin, end}).second);
      });
      std::set<std::pair<std::int64_t, std::int64_t>> expected;
      for (std::int64_t i = 0; i < n; i += 10) expected.insert({i, std::min(n, i + 10)});
      EXPECT_EQ(pieces, expected) << n << " on " << threads;
    }
  }
}

TEST(ParallelFor, LongPiecesAreSharedOutAndMultiplesOfTheGrain) {
  for (std::int64_t n : {1, 100, 4096, 1'000'000}) {
    for (std::int64_t grain : {1, 7, 1024}) {
      std::int64_t piece = long_pieces(n, grain);
      EXPECT_EQ(piece % grain, 0);
      EXPECT_GE(piece, grain);
      EXPECT_TRUE(piece == grain || n / piece >= 4 * get_num_threads()) << n << " by " << grain;
    }
  }
  EXPECT_GT(long_pieces(1'000'000'000, 1024), 1024);
}

TEST(ParallelFor, RunsOnSeveralThreadsAtOnce) {
  NumThreads scope(3);
  std::atomic<int> arrived{0};
  // Each piece waits for the others: only three threads at once get through.
  parallel_for(3, 1, [&](std::int64_t, std::int64_t) {
    ++arrived;
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (arrived < 3 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    EXPECT_EQ(arrived, 3);
  });
}

TEST(ParallelFor, RethrowsAndStaysUsable) {
  NumThreads scope(4);
  for (int round = 0; round < 50; ++round) {
    try {
      parallel_for(100, 1, [&](std::int64_t begin, std::int64_t) {
        if (begin == round) throw std::runtime_error("piece " + std::to_string(begin));
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& e) {
      EXPECT_EQ(e.what(), "piece " + std::to_string(round));
    }
    std::atomic<int> sum{0};
    parallel_for(100, 7, [&](std::int64_t begin, std::int64_t end) {
      sum += static_cast<int>(end - begin);
    });
    EXPECT_EQ(sum, 100);
  }
}

TEST(ParallelFor, NestedCallsStayInTheThread) {
  NumThreads scope(4);
  std::atomic<int> total{0};
  parallel_for(16, 1, [&](std::int64_t, std::int64_t) {
    auto self = std::this_thread::get_id();
    parallel_for(50, 3, [&](std::int64_t begin, std::int64_t end) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      EXPECT_EQ(begin % 3, 0);
      total += static_cast<int>(end - begin);
    });
  });
  EXPECT_EQ(total, 16 * 50);
}

TEST(ParallelFor, ServesManyCallersAtOnce) {
  NumThreads scope(3);
  std::vector<std::thread> callers;
  std::vector<long> sums(6);
  for (std::size_t c = 0; c < sums.size(); ++c) {
    callers.emplace_back([&sums, c] {
      for (int round = 0; round < 200; ++round) {
        std::vector<long> values(500);
        parallel_for(500, 16, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) values[static_cast<std::size_t>(i)] = i;
        });
        for (long v : values) sums[c] += v;
      }
    });
  }
  for (std::thread& t : callers) t.join();
  for (long sum : sums) EXPECT_EQ(sum, 200L * 499 * 250);
}

TEST(ParallelFor, ThreadsSleepAndWake) {
  NumThreads scope(2);
  std::set<std::thread::id> seen;
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // past the time of spinning
    std::mutex mutex;
    std::atomic<int> arrived{0};
    parallel_for(2, 1, [&](std::int64_t, std::int64_t) {
      ++arrived;
      while (arrived < 2) std::this_thread::yield();
      std::lock_guard lock(mutex);
      seen.insert(std::this_thread::get_id());
    });
  }
  EXPECT_GE(seen.size(), 2u);
}

TEST(ParallelFor, ExitDoesNotHang) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        set_num_threads(4);
        parallel_for(100, 1, [](std::int64_t, std::int64_t) {});
        std::exit(7);
      },
      ::testing::ExitedWithCode(7), "");
}

// In a process of its own, as the number is found once: all cores that it may run on, or as many
// as the environment says.
TEST(SetNumThreads, BeginsWithAllCores) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  int cores = CPU_COUNT(&set);
  auto exit_with_threads = [] { std::exit(get_num_threads() % 128); };
  {
    testing::EnvironmentScope none("RENSA_NUM_THREADS", std::nullopt);
    EXPECT_EXIT(exit_with_threads(), ::testing::ExitedWithCode(cores % 128), "");
  }
  testing::EnvironmentScope three("RENSA_NUM_THREADS", "3");
  EXPECT_EXIT(exit_with_threads(), ::testing::ExitedWithCode(3), "");
}

TEST(SetNumThreads, IsChecked) {
  EXPECT_GE(get_num_threads(), 1);
  EXPECT_THROW(set_num_threads(0), ValueError);
  EXPECT_THROW(set_num_threads(-1), ValueError);
}

TEST(ThreadState, IsTheThreadsOwnUntilInstalled) {
  UsingConfig off(&Config::train, false);
  std::thread([] { EXPECT_TRUE(config().train); }).join();
  ThreadState state = ThreadState::current().snapshot();
  std::thread([&state] {
    ThreadState::install(state);
    EXPECT_FALSE(config().train);
  }).join();
}

TEST(ThreadState, SnapshotLeavesTheRecordingBehind) {
  ThreadState& current = ThreadState::current();
  Recorder* before = current.recorder;
  current.recorder = reinterpret_cast<Recorder*>(&current);
  EXPECT_EQ(current.snapshot().recorder, nullptr);
  current.recorder = before;
}

TEST(UsingConfig, RestoresWhatWas) {
  EXPECT_TRUE(config().enable_backprop);
  {
    no_backprop_mode off;
    EXPECT_FALSE(config().enable_backprop);
    {
      force_backprop_mode on;
      EXPECT_TRUE(config().enable_backprop);
    }
    EXPECT_FALSE(config().enable_backprop);
  }
  EXPECT_TRUE(config().enable_backprop);
}

}  // namespace
}  // namespace rensa

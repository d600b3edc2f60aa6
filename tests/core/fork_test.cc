// Children of a process whose other threads were at work when it forked: they compute, allocate and
// end.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "rensa/array/routines.h"
#include "rensa/core/thread_pool.h"
#include "tests/num_threads.h"

namespace rensa {
namespace {

using testing::NumThreads;

// The thread sanitizer lets no child start threads. GCC 12's address sanitizer does not hold the
// locks of its allocator over a fork, so that a child of busy threads may wait for one for ever.
// Both need address space themselves.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kForks = false;
#else
constexpr bool kForks = true;
#endif

// The status that a child running `work` leaves; one that hangs is killed after 20 s.
int status_of_child(const std::function<bool()>& work) {
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(work() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

// Runs `work` on `count` threads, over and over, for its life.
class Busy {
 public:
  Busy(int count, const std::function<void()>& work) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this, work] {
        while (!stop_) work();
      });
    }
  }
  ~Busy() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

bool sums_right() {
  std::atomic<std::int64_t> sum{0};
  parallel_for(1000, 10, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) sum += i;
  });
  return sum == 499500;
}

TEST(Fork, TheChildComputesWhileTheParentDoes) {
  if (!kForks) GTEST_SKIP() << "not under this sanitizer";
  NumThreads scope(8);
  Busy busy(2, [] { sums_right(); });
  for (int i = 0; i < 30; ++i) ASSERT_EQ(status_of_child(sums_right), 0) << "fork " << i;
  EXPECT_TRUE(sums_right());
}

TEST(Fork, TheChildHasThreadsOfItsOwn) {
  if (!kForks) GTEST_SKIP() << "not under this sanitizer";
  NumThreads scope(2);
  ASSERT_TRUE(sums_right());
  auto meet = [] {
    std::atomic<int> arrived{0};
    parallel_for(2, 1, [&](std::int64_t, std::int64_t) {  // gets through on two threads at once
      ++arrived;
      while (arrived < 2) std::this_thread::yield();
    });
    return true;
  };
  EXPECT_EQ(status_of_child(meet), 0);
}

TEST(Fork, TheChildAllocatesWhileTheParentDoes) {
  if (!kForks) GTEST_SKIP() << "not under this sanitizer";
  auto allocate = [] {
    for (std::int64_t n = 1; n < 40; ++n) xp::empty({n * 100}, float64, cpu());
    return true;
  };
  Busy busy(4, [&] { allocate(); });
  for (int i = 0; i < 50; ++i) ASSERT_EQ(status_of_child(allocate), 0) << "fork " << i;
}

TEST(Fork, WithoutThreadsToBeHadTheCallerDoesTheWork) {
  if (!kForks) GTEST_SKIP() << "not under this sanitizer";
  EXPECT_EQ(status_of_child([] {
              set_num_threads(6);
              rlimit none = {1, 1};
              if (setrlimit(RLIMIT_AS, &none) != 0) return false;
              return sums_right() && sums_right();
            }),
            0);
}

}  // namespace
}  // namespace rensa

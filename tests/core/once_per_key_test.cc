// OncePerKey: made once, by one, without holding others up.
#include "rensa/core/once_per_key.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace rensa {
namespace {

TEST(OncePerKey, MakesOnceForAllThreads) {
  OncePerKey<std::string, int> once;
  std::atomic<int> made{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] { EXPECT_EQ(once.get("a", [&] { return ++made; }), 1); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 1);
}

TEST(OncePerKey, AnotherKeyDoesNotWait) {
  OncePerKey<std::string, int> once;
  std::latch begun(1), other_done(1);
  std::thread slow([&] {
    once.get("slow", [&] {
      begun.count_down();
      other_done.wait();
      return 1;
    });
  });
  begun.wait();
  EXPECT_EQ(once.get("other", [] { return 2; }), 2);  // would hang
  other_done.count_down();
  slow.join();
}

TEST(OncePerKey, WhatThrowsIsMadeAgain) {
  OncePerKey<int, int> once;
  EXPECT_THROW(once.get(1, []() -> int { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_EQ(once.get(1, [] { return 5; }), 5);
}

}  // namespace
}  // namespace rensa

// What runs at once on a GPU: a kernel waits on the device for a flag that other work raises. It
// sees the flag where both run at once, and gives up after a while where one comes after the other.
#include <gtest/gtest.h>

#include <chrono>

#include "rensa/array/routines.h"
#include "rensa/device/devices.h"
#include "rensa/device/stream.h"
#include "rensa/kernel/raw_kernel.h"
#include "tests/testing.h"

namespace rensa {
namespace {

constexpr std::int64_t kLong = 10'000'000'000, kShort = 50'000'000;  // ns that the kernel waits

constexpr const char* kSource = R"(
__device__ unsigned long long now() {
  unsigned long long ns;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
  return ns;
}
extern "C" __global__ void wait_for(const volatile int* flag, int* seen, long long limit) {
  unsigned long long begin = now();
  while (*flag == 0) {
    if (now() - begin > static_cast<unsigned long long>(limit)) return;
  }
  *seen = 1;
}
extern "C" __global__ void raise_flag(volatile int* flag) { *flag = 1; }
)";

class StreamOverlap : public ::testing::Test {
 protected:
  void SetUp() override {
    RENSA_NEEDS_GPUS(1);
    // Loading a kernel may wait for what runs, so that both are loaded before.
    cuda::Stream stream(gpu(0), cuda::non_blocking);
    begin(stream);
    raise_flag({1}, {1}, flag);
    wait_for({1}, {1}, flag, seen, kShort);
    cuda::synchronize(gpu(0));
    ASSERT_EQ(seen.item<int>(), 1);
  }
  /// A flag that is down. Its memory is of the stream that will raise it: the first use on another
  /// one would wait for that stream.
  void begin(const cuda::Stream& raising) {
    cuda::StreamScope on(raising);
    flag = xp::zeros({1}, int32, gpu(0));
    seen = xp::zeros({1}, int32, gpu(0));
    cuda::synchronize(gpu(0));
  }
  void wait_on(const cuda::Stream& stream, std::int64_t limit) {
    cuda::StreamScope on(stream);
    wait_for({1}, {1}, flag, seen, limit);
  }
  bool was_seen() {
    cuda::synchronize(gpu(0));
    return seen.item<int>() == 1;
  }
  /// Whether a kernel on `raising` runs while one that was queued before it on `waiting` does.
  bool meet(const cuda::Stream& waiting, const cuda::Stream& raising, std::int64_t limit) {
    begin(raising);
    wait_on(waiting, limit);
    cuda::StreamScope on(raising);
    raise_flag({1}, {1}, flag);
    return was_seen();
  }

  RawKernel wait_for{kSource, "wait_for"}, raise_flag{kSource, "raise_flag"};
  Array flag, seen;
};

TEST_F(StreamOverlap, KernelsOfTwoStreamsRunAtOnceAndOfOneInOrder) {
  cuda::Stream one(gpu(0), cuda::non_blocking), other(gpu(0), cuda::non_blocking);
  EXPECT_TRUE(meet(one, other, kLong));
  EXPECT_FALSE(meet(one, one, kShort));
}

TEST_F(StreamOverlap, OnlyNonBlockingStreamsDoNotWaitForTheNullStream) {
  cuda::Stream null = cuda::Stream::null(gpu(0));
  EXPECT_TRUE(meet(null, cuda::Stream(gpu(0), cuda::non_blocking), kLong));
  EXPECT_FALSE(meet(null, cuda::Stream(gpu(0)), kShort));
}

// The article on asynchronous transfer prints both copies on one stream; on that, what comes after
// a copy waits for it, and the copy for what comes before.
TEST_F(StreamOverlap, PinnedCopiesRunBesideKernelsOfOtherStreamsOnly) {
  Array up = to_pinned_memory(xp::ones({1}, int32, cpu()));
  cuda::synchronize(gpu(0));
  cuda::Stream compute(gpu(0), cuda::non_blocking), copies(gpu(0), cuda::non_blocking);
  begin(copies);
  wait_on(compute, kLong);
  flag.set(up, copies);
  EXPECT_TRUE(was_seen());

  begin(copies);
  wait_on(copies, kShort);
  flag.set(up, copies);
  EXPECT_FALSE(was_seen());
}

TEST_F(StreamOverlap, ResultsComeBackWhileAKernelRuns) {
  cuda::Stream compute(gpu(0), cuda::non_blocking), copies(gpu(0), cuda::non_blocking);
  Array up = to_pinned_memory(xp::ones({1}, int32, cpu()));
  Array results = xp::arange(1000, float32, gpu(0)), host = xp::empty_pinned({1000}, float32);
  begin(copies);
  wait_on(compute, kLong);
  std::int64_t before = cuda::sync_count();
  results.get(host, copies);
  EXPECT_EQ(cuda::sync_count(), before) << "the host goes on";
  copies.synchronize();
  EXPECT_EQ(host[999].item<float>(), 999.f);
  EXPECT_FALSE(compute.done()) << "the kernel has waited meanwhile";
  flag.set(up, copies);
  EXPECT_TRUE(was_seen());
}

// By staging they run beside it as well; what they cost is the host, which waits for its own copy
// and for what comes before that on its stream.
TEST_F(StreamOverlap, PageableCopiesRunBesideKernelsAndHoldTheHostUp) {
  Array up = xp::ones({1}, int32, cpu()), host = xp::empty({1000}, float32, cpu());
  Array results = xp::arange(1000, float32, gpu(0));
  cuda::Stream compute(gpu(0), cuda::non_blocking), copies(gpu(0), cuda::non_blocking);
  begin(copies);
  results.get(host, copies);  // memory for the stages is taken before: that may wait for what runs
  flag.set(up, copies);

  begin(copies);
  wait_on(compute, kLong);
  results.get(host, copies);
  EXPECT_FALSE(compute.done()) << "the kernel has waited meanwhile";
  flag.set(up, copies);
  EXPECT_TRUE(was_seen());

  begin(copies);
  auto before = std::chrono::steady_clock::now();
  wait_on(compute, kShort);
  results.get(host, compute);
  auto held = std::chrono::steady_clock::now() - before;
  EXPECT_GE(held, std::chrono::nanoseconds(kShort) / 2) << "the kernel runs for that long";
  EXPECT_EQ(host[999].item<float>(), 999.f);
}

}  // namespace
}  // namespace rensa

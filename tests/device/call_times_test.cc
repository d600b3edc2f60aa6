// Times of calls: nesting, units, GPUs without a wait.
#include "rensa/device/call_times.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/device/stream_graph.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using namespace std::chrono_literals;

TEST(CallTimes, TotalsCountWhatIsWithinAnotherCallOnce) {
  CallTimes times;
  times.begin("test", cpu());
  times.begin("test", cpu());
  std::this_thread::sleep_for(2ms);
  times.end("inner");
  times.begin("test", cpu());
  times.forget();
  times.end("outer");
  const auto& calls = times.history();
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].name, "inner");
  EXPECT_GE(calls[0].elapsed_time, 2e-3);
  EXPECT_GE(calls[1].elapsed_time, calls[0].elapsed_time);
  EXPECT_EQ(times.total(), calls[1].elapsed_time);
  times.begin("test", cpu());
  times.end("inner");
  EXPECT_EQ(times.summary()["inner"].occurrence, 2);
  EXPECT_EQ(times.summary()["inner"].elapsed_time,
            times.history()[0].elapsed_time + times.history()[2].elapsed_time);
}

TEST(CallTimes, PrintsInTheUnitAskedFor) {
  CallTimes times;
  EXPECT_EQ(times.str("Name", "auto"), "Name  ElapsedTime  Occurrence\n");
  times.begin("test", cpu());
  std::this_thread::sleep_for(2ms);
  times.end("slow");
  std::string seconds = times.str("Name", "sec"), fitting = times.str("Name", "auto");
  EXPECT_NE(seconds.find("sec "), std::string::npos) << seconds;
  const char* unit = times.total() < 1 ? "ms " : "sec ";  // of a machine that is busy elsewhere
  EXPECT_NE(fitting.find(unit), std::string::npos) << fitting;
  EXPECT_EQ(times.str("Name", "auto_foreach"), fitting);
  EXPECT_NE(times.str("Name", "us").find("us"), std::string::npos);
  EXPECT_NE(testing::thrown<ValueError>([&] { times.str("Name", "hours"); }).find("auto_foreach"),
            std::string::npos);
}

TEST(CallTimes, OfGpusWaitWhereTheyAreRead) {
  RENSA_NEEDS_GPUS(1);
  Array x = xp::ones({2048, 2048}, float32, gpu(0)), y;
  (void)xp::matmul(x, x);
  cuda::synchronize(gpu(0));
  CallTimes times;
  std::int64_t waits = cuda::sync_count();
  {
    cuda::ForbidSync strict;
    for (int i = 0; i < 600; ++i) {  // more than are kept before it is looked which are done
      times.begin("test", gpu(0));
      times.begin("test", gpu(0));
      times.end("nothing");
      if (i < 4) y = xp::matmul(x, x);
      times.end("outer");
    }
  }
  EXPECT_EQ(cuda::sync_count(), waits);
  const auto& calls = times.history();
  ASSERT_EQ(calls.size(), 1200u);
  // 17 GFLOP take longer than nothing, and less than a second.
  EXPECT_GT(calls[1].elapsed_time, calls[0].elapsed_time);
  EXPECT_GT(times.total(), 4e-5);
  EXPECT_LT(times.total(), 1);
}

TEST(CallTimes, OfACapturedStreamAreRefused) {
  RENSA_NEEDS_GPUS(1);
  cuda::Stream stream(gpu(0), cuda::non_blocking);
  CallTimes times;
  (void)cuda::capture_graph(stream, [&] {
    EXPECT_NE(testing::thrown<ValueError>([&] { times.begin("Timer", gpu(0)); }).find("captured"),
              std::string::npos);
  });
  EXPECT_TRUE(times.history().empty());
}

}  // namespace
}  // namespace rensa

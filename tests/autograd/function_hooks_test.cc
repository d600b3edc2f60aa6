// The hooks of functions that come with the library.
#include "rensa/autograd/function_hooks.h"

#include <gtest/gtest.h>

#include <sstream>

#include "rensa/array/creation.h"
#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"
#include "rensa/device/pool_options.h"
#include "rensa/device/stream.h"
#include "rensa/functions/functions.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using Names = std::vector<std::string>;

template <class Calls> Names names_of(const Calls& calls) {
  Names names;
  for (const auto& call : calls) names.push_back(call.name);
  return names;
}

/// The last number of a report's line that begins with `name`: how often it was called.
int calls_in(const std::string& report, const std::string& name) {
  std::istringstream lines(report);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + " ")) return std::stoi(line.substr(line.rfind(' ')));
  }
  return 0;
}

TEST(TimerHook, TimesFunctionsForwardAndBackward) {
  for (Device device : testing::test_devices()) {
    Variable x(xp::ones({64, 32}, float32, device)), W(xp::ones({16, 32}, float32, device));
    function_hooks::TimerHook timer;
    {
      FunctionHookScope scope(timer);
      cuda::ForbidSync strict;
      F::sum(F::linear(x, W)).backward();
    }
    (void)F::relu(x);
    Names names = names_of(timer.call_history());
    EXPECT_EQ((Names{names[0], names[1]}), (Names{"linear", "sum"}));
    EXPECT_EQ(names.back(), "linear, backward");
    auto summary = timer.summary();
    EXPECT_EQ(summary["matmul"].occurrence, 2);
    EXPECT_EQ(summary.count("relu"), 0u);
    // What linear's backward applies is part of it.
    EXPECT_GE(summary["linear, backward"].elapsed_time, summary["matmul"].elapsed_time);
    double outermost = 0;
    for (const char* name : {"linear", "sum", "sum, backward", "linear, backward"}) {
      EXPECT_GT(summary[name].elapsed_time, 0) << name;
      outermost += summary[name].elapsed_time;
    }
    EXPECT_NEAR(timer.total_time(), outermost, 1e-9);
    std::ostringstream report;
    timer.print_report("us", report);
    EXPECT_TRUE(report.str().starts_with("FunctionName")) << report.str();
    EXPECT_EQ(calls_in(report.str(), "matmul"), 2) << report.str();
    EXPECT_EQ(calls_in(report.str(), "linear"), 1) << report.str();
  }
}

TEST(TimerHook, AFunctionThatThrowsHasItsTime) {
  function_hooks::TimerHook timer;
  FunctionHookScope scope(timer);
  Variable x(xp::ones({2, 3}));
  EXPECT_THROW((void)F::linear(x, Variable(xp::ones({2, 2}))), ShapeError);
  (void)F::relu(x);
  EXPECT_EQ(names_of(timer.call_history()), (Names{"linear", "relu"}));
  EXPECT_EQ(timer.total_time(),
            timer.call_history()[0].elapsed_time + timer.call_history()[1].elapsed_time);
}

TEST(MemoryProfileHook, CountsWhatFunctionsAskFor) {
  for (Device device : testing::test_devices()) {
    Variable x(xp::ones({256, 1024}, float32, device));
    constexpr std::int64_t kBytes = 256 * 1024 * 4;
    function_hooks::CupyMemoryProfileHook memory;
    {
      FunctionHookScope scope(memory);
      (void)F::relu(x);  // given back at once, and counted all the same
      Array outside = xp::ones({256, 1024}, float32, device);
      F::sum(F::relu(x)).backward();
    }
    std::int64_t total = memory.total_used_bytes();
    (void)F::relu(x);
    EXPECT_EQ(memory.total_used_bytes(), total);
    auto summary = memory.summary();
    EXPECT_EQ(summary["relu"].used_bytes, 2 * kBytes);
    EXPECT_EQ(summary["relu"].occurrence, 2);
    EXPECT_EQ(memory.call_history()[0].used_bytes, kBytes);
    EXPECT_EQ(memory.call_history()[0].depth, 0);
    std::int64_t outermost = 0;
    for (const auto& call : memory.call_history()) {
      if (call.depth == 0) outermost += call.used_bytes;
      EXPECT_GE(call.used_bytes, 0);
    }
    EXPECT_EQ(total, outermost);
    EXPECT_GE(total, 3 * kBytes);  // the gradient too
    std::ostringstream report;
    memory.print_report("auto", report);
    EXPECT_NE(report.str().find("2.00MB"), std::string::npos) << report.str();
    EXPECT_EQ(calls_in(report.str(), "relu"), 2) << report.str();
    EXPECT_THROW((void)memory.str("bits"), ValueError);
    EXPECT_NE(memory.str("B").find(std::to_string(2 * kBytes) + "B"), std::string::npos);
  }
}

TEST(MemoryProfileHook, AcquiredIsWhatNoFreeBlockServed) {
  for (Device device : testing::test_devices()) {
    function_hooks::MemoryProfileHook memory;
    FunctionHookScope scope(memory);
    // Larger than what other tests may have left.
    Variable x(xp::ones({17, 1024, 1024}, float32, device));
    (void)F::relu(x);
    EXPECT_GE(memory.call_history()[0].acquired_bytes, memory.call_history()[0].used_bytes);
    EXPECT_EQ(memory.total_acquired_bytes(), memory.call_history()[0].acquired_bytes);
    // Such blocks go back to the system on the CPU, and all do without a pool.
    if (device.is_cpu() || pool_off()) continue;
    (void)F::relu(x);
    EXPECT_EQ(memory.call_history()[1].acquired_bytes, 0);
  }
}

TEST(PrintHook, PrintsInputsAndGradients) {
  for (Device device : testing::test_devices()) {
    std::ostringstream out;
    function_hooks::PrintHook hook(out);
    Variable x(xp::array({{1.f, 2.f}, {3.f, 6.f}}).to(device));
    {
      FunctionHookScope scope(hook);
      F::sum(F::relu(x)).backward();
    }
    std::string text = out.str(), where = device.str();
    EXPECT_TRUE(text.starts_with("function  relu\n  input 0  (2, 2), float32, " + where +
                                 ": mean 3, std 1.87083\nfunction  sum\n"))
        << text;
    EXPECT_NE(text.find("function  sum, backward\n  output gradient 0  (), float32, " + where +
                        ": mean 1, std 0\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("function  relu, backward\n"), std::string::npos) << text;
  }
}

TEST(PrintHook, WithoutStatisticsDoesNotWait) {
  for (Device device : testing::test_devices()) {
    std::ostringstream out;
    function_hooks::PrintHook hook(out, false);
    Variable x(xp::ones({2}, float32, device)), none_of_it(xp::ones({0}, int32, device));
    FunctionHookScope scope(hook);
    cuda::ForbidSync strict;
    (void)F::relu(x), (void)F::reshape(none_of_it, {0, 1});
    EXPECT_EQ(out.str(), "function  relu\n  input 0  (2,), float32, " + device.str() +
                             "\nfunction  reshape\n  input 0  (0,), int32, " + device.str() + "\n");
  }
}

TEST(CUDAProfileHook, NamesFunctionsInATimeline) {
  timeline::Timeline trace("");
  Variable x(xp::ones({2}));
  {
    function_hooks::CUDAProfileHook hook;
    FunctionHookScope scope(hook);
    F::sum(F::relu(x)).backward();
    EXPECT_THROW((void)F::linear(x, Variable(xp::ones({2, 2}))), Error);
  }
  (void)F::tanh(x);
  Names ranges;
  for (const timeline::Record& record : trace.stop()) {
    if (record.kind == timeline::Kind::range) ranges.push_back(record.name);
  }
  auto count = [&](const char* name) { return std::count(ranges.begin(), ranges.end(), name); };
  EXPECT_EQ(count("relu"), 1);
  EXPECT_EQ(count("sum, backward"), 1);
  EXPECT_EQ(count("relu, backward"), 1);
  EXPECT_EQ(count("linear"), 1);
  EXPECT_EQ(count("tanh"), 0);
}

}  // namespace
}  // namespace rensa

// GpuMonitor: samples by a thread and at its trigger, from libraries that stand in for NVML.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "rensa/core/error.h"
#include "rensa/device/nvml.h"
#include "rensa/optimizers/optimizers.h"
#include "rensa/training/training.h"
#include "tests/device/fake_nvml.h"
#include "tests/temporary_folder.h"
#include "tests/testing.h"
#include "tests/training/models.h"

namespace rensa::training {
namespace {

using cuda::GpuStatus;
using extensions::GpuMonitor;
using extensions::GpuSource;
using ::testing::HasSubstr;

/// Waits for what another thread does, a minute at most.
template <class F> bool comes(F condition) {
  for (int i = 0; i < 60000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

class GpuMonitorTest : public ::testing::Test {
 protected:
  GpuMonitorTest() { optimizer_.setup(model_); }
  Trainer make_trainer(int iterations) {
    iterators::SerialIterator iterator(testing::line_data(4), 2, {.shuffle = false});
    return Trainer(StandardUpdater(iterator, optimizer_), {iterations, "iteration"},
                   folder_ / "out");
  }
  static double number(const Observation& observation, const std::string& key) {
    return observation.at(key).item<double>();
  }
  testing::Line model_;
  optimizers::SGD optimizer_{0.01};
  testing::TemporaryFolder folder_;
};

TEST_F(GpuMonitorTest, WithoutAThreadItSamplesWhenItIsCalled) {
  testing::FakeNvml fake;
  cuda::Nvml nvml;
  std::vector<GpuSource> sources;
  for (const char* bus : {"0000:18:00.0", "0000:B3:00.0"}) {
    sources.push_back(
        {"gpu" + std::to_string(sources.size()), [&, bus] { return nvml.status(bus); }});
  }
  fake.set("0/memory_total", 1000), fake.set("1/temperature/error", 3);
  Trainer trainer = make_trainer(3);
  trainer.extend(
      [&](Trainer& t) {
        auto iteration = static_cast<double>(t.updater().iteration());
        fake.set("0/utilization", 10 * iteration), fake.set("1/power", 1000 * iteration);
        fake.set("0/nvlink_tx", 1e6 * iteration);
      },
      {.priority = kPriorityWriter + 1});
  trainer.extend(GpuMonitor(sources, 0), {.trigger = {1, "iteration"}});
  trainer.extend(extensions::LogReport({.trigger = {3, "iteration"}}));
  trainer.extend([&](Trainer& t) {
    auto iteration = static_cast<double>(t.updater().iteration());
    EXPECT_EQ(number(t.observation(), "gpu0/utilization"), 10 * iteration);
    EXPECT_EQ(number(t.observation(), "gpu0/utilization/max"), 10 * iteration);
    EXPECT_EQ(number(t.observation(), "gpu0/memory_total"), 1000);
    EXPECT_DOUBLE_EQ(number(t.observation(), "gpu1/power"), iteration);
    EXPECT_EQ(t.observation().count("gpu0/temperature"), 1u);
    EXPECT_EQ(t.observation().count("gpu1/temperature"), 0u);
    // From the second sample on.
    EXPECT_EQ(t.observation().count("gpu0/nvlink_tx"), iteration > 1 ? 1u : 0u);
    if (iteration > 1) {
      EXPECT_GT(number(t.observation(), "gpu0/nvlink_tx"), 0);
      EXPECT_EQ(number(t.observation(), "gpu1/nvlink_tx"), 0);
    }
  });
  trainer.run();
  auto& log = dynamic_cast<extensions::LogReport&>(trainer.get_extension("LogReport")).log();
  ASSERT_EQ(log.size(), 1u);
  EXPECT_EQ(log[0].values.at("gpu0/utilization"), 20);
}

TEST_F(GpuMonitorTest, AThreadTakesSamplesBetweenItsCalls) {
  std::atomic<int> samples{0};
  std::atomic<int> most{0};  // samples that the run lets through
  auto status = [&] {
    GpuStatus found;
    (void)comes([&] { return samples < most; });
    found.utilization = samples++;
    return found;
  };
  most = 1;  // the constructor's
  GpuMonitor monitor({{"gpu0", status}}, 1e-3);
  most = 4;
  Trainer trainer = make_trainer(2);
  trainer.extend(
      [&](Trainer& t) {
        EXPECT_TRUE(t.updater().iteration() > 1 || comes([&] { return samples == 4; }));
      },
      {.priority = kPriorityWriter + 1});
  trainer.extend(std::move(monitor), {.trigger = {1, "iteration"}});
  trainer.extend([&](Trainer& t) {
    if (t.updater().iteration() > 1) return;
    // 1 and 2, and 3 if it has been added up by then.
    double mean = number(t.observation(), "gpu0/utilization");
    EXPECT_TRUE(mean == 1.5 || mean == 2) << mean;
    EXPECT_EQ(number(t.observation(), "gpu0/utilization/max"), mean == 2 ? 3 : 2);
    most = 1 << 30;
  });
  trainer.run();
  int after = samples;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(samples, after);  // the thread has ended with the run
  EXPECT_GE(after, 4);
}

TEST_F(GpuMonitorTest, WhatTheThreadMeetsEndsTheRun) {
  std::atomic<int> samples{0};
  auto status = [&]() -> GpuStatus {
    if (++samples > 1) throw CudaError("the GPU is lost");
    return {};
  };
  Trainer trainer = make_trainer(5);
  trainer.extend([&](Trainer&) { EXPECT_TRUE(comes([&] { return samples > 1; })); },
                 {.priority = kPriorityWriter + 1});
  trainer.extend(GpuMonitor({{"gpu0", status}}, 1e-3), {.trigger = {1, "iteration"}});
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(testing::thrown<CudaError>([&] { trainer.run(); }), HasSubstr("the GPU is lost"));
  ::testing::internal::GetCapturedStderr();
}

TEST_F(GpuMonitorTest, IsCalledAfterEachEpoch) {
  GpuStatus status;
  status.power = 100;
  Trainer trainer = make_trainer(4);
  trainer.extend(GpuMonitor({{"gpu0", [&] { return status; }}}, 0));
  int calls = 0;
  trainer.extend([&](Trainer& t) { calls += t.observation().count("gpu0/power") != 0; });
  trainer.run();
  EXPECT_EQ(calls, 2);
}

TEST_F(GpuMonitorTest, BadArguments) {
  EXPECT_THROW(GpuMonitor(std::vector<GpuSource>{}, 1), ValueError);
  for (double interval : {-1., std::nan(""), 1e9}) {
    EXPECT_THROW(GpuMonitor({{"gpu0", [] { return GpuStatus(); }}}, interval), ValueError);
  }
  EXPECT_THAT(testing::thrown<DeviceError>([] { GpuMonitor monitor({.devices = {cpu()}}); }),
              HasSubstr("GpuMonitor"));
  Device absent = gpu(num_gpus());
  std::string message =
      testing::thrown<DeviceError>([&] { GpuMonitor monitor({.devices = {absent}}); });
  EXPECT_THAT(message, HasSubstr("GpuMonitor: " + absent.str()));
  if (num_gpus() == 0) {
    EXPECT_EQ(testing::thrown<DeviceError>([] { GpuMonitor monitor; }), message);
  }
}

TEST_F(GpuMonitorTest, TheRunOfTheDocumentation) {
  RENSA_NEEDS_GPUS(1);
  Trainer trainer = make_trainer(4);
  trainer.extend(extensions::GpuMonitor());
  trainer.extend(extensions::LogReport());
  trainer.extend(extensions::PlotReport({"gpu0/utilization"}));
  trainer.run();
  auto& log = dynamic_cast<extensions::LogReport&>(trainer.get_extension("LogReport")).log();
  EXPECT_EQ(log.back().values.count("gpu0/memory_used/max"), 1u);
}

TEST_F(GpuMonitorTest, OfGpusThatAreThere) {
  RENSA_NEEDS_GPUS(1);
  Trainer trainer = make_trainer(2);
  trainer.extend(GpuMonitor({.interval = 0}));
  trainer.extend(
      [&](Trainer& t) {
        for (int i = 0; i < num_gpus(); ++i) {
          EXPECT_GT(number(t.observation(), "gpu" + std::to_string(i) + "/memory_used"), 0);
        }
      },
      {.trigger = {1, "epoch"}});
  trainer.run();
}

}  // namespace
}  // namespace rensa::training

// gpu_status: what NVML says, by a library that stands in for it, and of a GPU that is there.
#include "rensa/device/gpu_status.h"

#include <gmock/gmock.h>

#include "rensa/core/error.h"
#include "rensa/device/nvml.h"
#include "rensa/device/stream.h"
#include "tests/device/fake_nvml.h"
#include "tests/testing.h"

namespace rensa::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::thrown;

constexpr char kFirst[] = "0000:18:00.0", kSecond[] = "0000:b3:00.0";

// NCCL opens NVML by its name, in this process too.
TEST(GpuStatus, TheStandInIsNotGivenToWhoAsksForTheLibrary) {
  testing::FakeNvml fake;
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (!library) return;
  EXPECT_EQ(dlsym(library, "fake_nvml_set"), nullptr);
  dlclose(library);
}

TEST(GpuStatus, TellsWhatTheLibrarySays) {
  testing::FakeNvml fake;
  fake.set("1/utilization", 87), fake.set("1/memory_utilization", 43);
  fake.set("1/memory_used", 5e9), fake.set("1/memory_total", 150e9);
  fake.set("1/temperature", 61), fake.set("1/power", 512345);
  fake.set("1/sm_clock", 1980), fake.set("1/memory_clock", 3201);
  fake.set("1/pcie_tx", 70000), fake.set("1/pcie_rx", 9000000);
  fake.set("1/nvlink_tx", 5e10), fake.set("1/nvlink_rx", 3);
  GpuStatus status = Nvml().status(kSecond);
  EXPECT_EQ(status.name, "1/Fake GPU");
  EXPECT_EQ(status.pci_bus_id, kSecond);
  EXPECT_EQ(status.utilization, 87);
  EXPECT_EQ(status.memory_utilization, 43);
  EXPECT_EQ(status.memory_used, 5e9);
  EXPECT_EQ(status.memory_total, 150e9);
  EXPECT_EQ(status.temperature, 61);
  EXPECT_DOUBLE_EQ(status.power.value(), 512.345);
  EXPECT_EQ(status.sm_clock, 1980);
  EXPECT_EQ(status.memory_clock, 3201);
  EXPECT_EQ(status.pcie_tx, 70e6);
  EXPECT_EQ(status.pcie_rx, 9e9);
  EXPECT_EQ(status.nvlink_sent, 5e10 * 1024);
  EXPECT_EQ(status.nvlink_received, 3 * 1024);
  EXPECT_EQ(Nvml().status(kFirst).utilization, 0);
}

TEST(GpuStatus, WhatAGpuDoesNotTellIsEmpty) {
  testing::FakeNvml fake;
  Nvml nvml;
  for (const char* key : {"0/utilization", "0/memory", "0/temperature", "0/power", "0/sm_clock",
                          "0/memory_clock", "0/pcie_tx", "0/pcie_rx", "0/nvlink_tx"}) {
    for (int error : {3, 4, 13}) {  // not supported, no permission, not in this driver
      fake.set(std::string(key) + "/error", error);
      GpuStatus status = nvml.status(kFirst);
      int empty = 0;
      for (auto field : {&GpuStatus::utilization, &GpuStatus::memory_used, &GpuStatus::temperature,
                         &GpuStatus::power, &GpuStatus::sm_clock, &GpuStatus::memory_clock,
                         &GpuStatus::pcie_tx, &GpuStatus::pcie_rx, &GpuStatus::nvlink_sent}) {
        empty += !(status.*field);
      }
      EXPECT_EQ(empty, 1) << key;
    }
    fake.set(std::string(key) + "/error", 0);
  }
}

TEST(GpuStatus, FailuresAreTold) {
  testing::FakeNvml fake;
  Nvml nvml;
  fake.set("0/power/error", 15);
  EXPECT_THAT(thrown<CudaError>([&] { nvml.status(kFirst); }),
              AllOf(HasSubstr("nvmlDeviceGetPowerUsage"), HasSubstr("Unknown Error")));
  EXPECT_THAT(thrown<CudaError>([&] { nvml.status("0000:77:00.0"); }),
              AllOf(HasSubstr("0000:77:00.0"), HasSubstr("Not Found")));
  fake.set("init/error", 9);
  EXPECT_THAT(thrown<CudaError>([] { Nvml(); }),
              AllOf(HasSubstr("libnvidia-ml.so.1"), HasSubstr("Driver Not Loaded")));
}

TEST(GpuStatus, ALibraryThatIsMissingOrAnotherOneIsTold) {
  EXPECT_THAT(thrown<CudaError>([] {
                Nvml nvml({"NVML", {"libnvidia-ml-absent.so.1"}, "", nvml_source().advice});
              }),
              AllOf(HasSubstr("NVML (libnvidia-ml-absent.so.1) was not found"),
                    HasSubstr("NVIDIA's driver")));
  EXPECT_THAT(thrown<CudaError>([] {
                Nvml nvml({"NVML", {"libm.so.6"}, "", ""});
              }),
              HasSubstr("nvmlInit_v2"));
}

TEST(GpuStatus, NeedsAGpu) {
  EXPECT_THAT(thrown<DeviceError>([] { gpu_status(cpu()); }), HasSubstr("gpu_status"));
  EXPECT_THROW(gpu_status(gpu(num_gpus())), DeviceError);
}

TEST(GpuStatus, OfAGpuThatIsThere) {
  RENSA_NEEDS_GPUS(1);
  std::int64_t waits = sync_count();
  GpuStatus status = gpu_status(gpu(0));
  EXPECT_EQ(sync_count(), waits);
  EXPECT_EQ(status.name, gpu(0).name());
  EXPECT_EQ(status.pci_bus_id, gpu(0).pci_bus_id());
  EXPECT_GE(status.memory_total.value(), static_cast<double>(gpu(0).mem_info().total));
  EXPECT_GT(status.memory_used.value(), 0);
  EXPECT_LE(status.memory_used.value(), status.memory_total.value());
  EXPECT_LE(status.utilization.value_or(0), 100);
  EXPECT_LT(status.power.value_or(0), 5000);
}

}  // namespace
}  // namespace rensa::cuda

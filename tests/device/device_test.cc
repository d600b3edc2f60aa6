// What a Device tells of the hardware behind its name, and the counters of transfers.
#include <gtest/gtest.h>

#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/devices.h"
#include "rensa/device/memory_pool.h"
#include "rensa/device/transfer_stats.h"
#include "tests/testing.h"

namespace rensa {
namespace {

TEST(DeviceQuestions, OfTheCpu) {
  cpu().synchronize();
  for (auto ask : {+[] { (void)cpu().name(); }, +[] { (void)cpu().compute_capability(); },
                   +[] { (void)cpu().pci_bus_id(); }, +[] { (void)cpu().mem_info(); },
                   +[] { (void)cpu().attributes(); }}) {
    EXPECT_THROW(ask(), DeviceError);
  }
}

TEST(DeviceQuestions, OfAGpuThatIsNotThere) {
  Device absent = gpu(num_gpus());
  EXPECT_THROW(absent.synchronize(), DeviceError);
  EXPECT_THROW((void)absent.name(), DeviceError);
  EXPECT_THROW((void)absent.attributes(), DeviceError);
  for (int i : {-1, kMaxGpus, 40000, 65536}) EXPECT_THROW((void)gpu(i), DeviceError) << i;
}

TEST(DeviceQuestions, OfAGpu) {
  RENSA_NEEDS_GPUS(1);
  Device device = gpu(0);
  std::int64_t before = cuda::sync_count();
  EXPECT_FALSE(device.name().empty());
  auto attributes = device.attributes();
  EXPECT_EQ(attributes.at("WarpSize"), 32);
  EXPECT_GE(attributes.at("MultiProcessorCount"), 1);
  EXPECT_EQ(device.compute_capability(),
            std::to_string(attributes.at("ComputeCapabilityMajor")) +
                std::to_string(attributes.at("ComputeCapabilityMinor")));
  EXPECT_EQ(device.pci_bus_id().find(':'), 4u) << device.pci_bus_id();
  cuda::MemoryInfo memory = device.mem_info();
  EXPECT_GT(memory.total, 0);
  EXPECT_LE(memory.free, memory.total);
  EXPECT_EQ(cuda::sync_count(), before);
  device.synchronize();
  EXPECT_EQ(cuda::sync_count(), before + 1);
}

TEST(TransferStats, CountByDirection) {
  for (Device device : testing::test_devices()) {
    cuda::TransferStats before = cuda::transfer_stats();
    Array a = xp::array(std::vector<float>(1000, 1.f), device);
    Array b = a + a;
    (void)b.to_vector<float>();
    (void)b.sum().item<float>();
    (void)b.to(cpu());
    cuda::TransferStats after = cuda::transfer_stats();
    bool moves = device.is_cuda();
    EXPECT_EQ(after.host_to_device.transfers - before.host_to_device.transfers, moves ? 1 : 0);
    EXPECT_EQ(after.host_to_device.bytes - before.host_to_device.bytes, moves ? 4000 : 0);
    EXPECT_EQ(after.device_to_host.transfers - before.device_to_host.transfers, moves ? 3 : 0);
    EXPECT_EQ(after.device_to_host.bytes - before.device_to_host.bytes, moves ? 8004 : 0);
    EXPECT_EQ(after.peer, before.peer);
  }
}

// Slow code is to be seen: operands on two devices are refused, not moved.
TEST(TransferStats, WhatIsRefusedMovesNothing) {
  RENSA_NEEDS_GPUS(1);
  Array there = xp::ones({2, 3}, float32, gpu(0)), here = xp::ones({2, 3}, float32, cpu());
  cuda::TransferStats before = cuda::transfer_stats();
  for (int order : {0, 1}) {
    std::string text =
        testing::thrown<DeviceError>([&] { (void)(order == 0 ? there + here : here + there); });
    EXPECT_NE(text.find("cuda:0"), std::string::npos) << text;
    EXPECT_NE(text.find("cpu"), std::string::npos) << text;
    EXPECT_NE(text.find(".to("), std::string::npos) << text << ": the way out";
  }
  cuda::TransferStats after = cuda::transfer_stats();
  EXPECT_EQ(after.host_to_device, before.host_to_device);
  EXPECT_EQ(after.device_to_host, before.device_to_host);
}

TEST(DeviceMemory, AnArrayTakesThatOfItsOwnDeviceOnly) {
  RENSA_NEEDS_GPUS(1);
  auto used = [](int i) { return cuda::memory_pool(gpu(i)).used_bytes(); };
  std::int64_t first = used(0);
  Array here = xp::ones({1000}, float32, cpu());
  EXPECT_EQ(used(0), first);
  if (num_gpus() > 1) {
    std::int64_t second = used(1);
    Array other = xp::ones({1000}, float32, gpu(1));
    EXPECT_EQ(used(0), first);
    EXPECT_GE(used(1), second + 4000);
  }
  Array there = xp::ones({1000}, float32, gpu(0));
  EXPECT_GE(used(0), first + 4000);
}

TEST(TransferStats, CountBetweenGpus) {
  RENSA_NEEDS_GPUS(2);
  Array a = xp::ones(250, float32, gpu(0));
  cuda::TransferStats before = cuda::transfer_stats();
  (void)a.to(gpu(1));
  cuda::TransferStats after = cuda::transfer_stats();
  EXPECT_EQ(after.peer.transfers - before.peer.transfers, 1);
  EXPECT_EQ(after.peer.bytes - before.peer.bytes, 1000);
  EXPECT_EQ(after.host_to_device, before.host_to_device);
}

}  // namespace
}  // namespace rensa

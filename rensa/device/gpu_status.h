// What a GPU is doing: its load, memory, temperature, power, clocks and traffic.
#pragma once

#include <optional>
#include <string>

#include "rensa/core/device.h"

namespace rensa::cuda {

/// What the driver says of a GPU at one moment, for all processes together. What this GPU or its
/// driver does not tell is empty.
struct GpuStatus {
  std::string name, pci_bus_id;  // "NVIDIA H200", "0000:18:00.0"
  /// Percent of the last moments (up to a second) in which a kernel ran, and in which memory was
  /// read or written.
  std::optional<double> utilization, memory_utilization;
  std::optional<double> memory_used, memory_total;  // bytes
  std::optional<double> temperature;                // degrees Celsius
  std::optional<double> power;                      // watts
  std::optional<double> sm_clock, memory_clock;     // MHz
  std::optional<double> pcie_tx, pcie_rx;           // sent and received, bytes per second
  /// Bytes over all NVLinks since the driver was loaded: two of them, and the time between, give
  /// the traffic.
  std::optional<double> nvlink_sent, nvlink_received;
};

/// By NVML, NVIDIA's library for that, which comes with the driver and is opened at the first call.
/// The GPU is the one that CUDA means, whatever CUDA_VISIBLE_DEVICES says. Waits for no stream; may
/// take some 40 ms, in which NVML measures PCIe's traffic. Throws DeviceError for the CPU and a GPU
/// that is not there, CudaError where NVML is missing or fails.
GpuStatus gpu_status(Device device);
/// Of any GPU of the machine, also one that this process does not see, by its place on the PCI bus
/// ("0000:18:00.0"; nvidia-smi shows it).
GpuStatus gpu_status(const std::string& pci_bus_id);

}  // namespace rensa::cuda

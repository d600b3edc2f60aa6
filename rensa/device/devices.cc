// What GPUs there are, and the calling thread's current device.
#include "rensa/device/devices.h"

#include <fmt/format.h>

#include <algorithm>

#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/cuda_runtime.h"
#include "rensa/device/stream.h"

namespace rensa {

int num_gpus() {
  static const int count = std::min(cuda::runtime::device_count(), kMaxGpus);
  return count;
}

Device try_gpu(int index) { return index >= 0 && index < num_gpus() ? gpu(index) : cpu(); }

std::vector<Device> try_all_gpus() {
  std::vector<Device> devices;
  for (int i = 0; i < num_gpus(); ++i) devices.push_back(gpu(i));
  if (devices.empty()) devices.push_back(cpu());
  return devices;
}

void check_device(Device device) {
  if (device.is_cpu() || (device.index >= 0 && device.index < num_gpus())) return;
  if (num_gpus() == 0) {
    throw DeviceError(fmt::format("{} cannot be used: {}; try_gpu() gives cpu() then", device.str(),
                                  cuda::runtime::why_no_device()));
  }
  throw DeviceError(fmt::format("{} is not there: this machine has {} GPU{}, cuda:0 to cuda:{}",
                                device.str(), num_gpus(), num_gpus() == 1 ? "" : "s",
                                num_gpus() - 1));
}

void Device::use() const {
  check_device(*this);
  ThreadState::current().device = *this;
}

namespace {

void check_gpu(const char* operation, Device device) {
  check_device(device);
  if (device.is_cpu()) {
    throw DeviceError(fmt::format("{}: cpu is no GPU; name one with gpu(i)", operation));
  }
}

}  // namespace

void Device::synchronize() const {
  if (is_cuda()) cuda::synchronize(*this);
}

std::string Device::name() const {
  check_gpu("name", *this);
  return cuda::runtime::device_name(*this);
}

std::string Device::compute_capability() const {
  std::map<std::string, int> known = attributes();
  return fmt::format("{}{}", known["ComputeCapabilityMajor"], known["ComputeCapabilityMinor"]);
}

std::string Device::pci_bus_id() const {
  check_gpu("pci_bus_id", *this);
  return cuda::runtime::pci_bus_id(*this);
}

cuda::MemoryInfo Device::mem_info() const { return cuda::mem_info(*this); }

std::map<std::string, int> Device::attributes() const {
  check_gpu("attributes", *this);
  return cuda::runtime::device_attributes(*this);
}

DeviceScope::DeviceScope(Device device) : previous_(ThreadState::current().device) { device.use(); }

namespace cuda {

bool is_available() { return num_gpus() > 0; }

std::string diagnose() {
  std::string text = num_gpus() > 0 ? fmt::format("GPUs: {}\n", num_gpus())
                                    : fmt::format("GPUs: none: {}\n", runtime::why_no_device());
  return text + runtime::describe_system();
}

MemoryInfo mem_info(Device device) {
  check_gpu("mem_info", device);
  return runtime::memory_info(device);
}

}  // namespace cuda

}  // namespace rensa

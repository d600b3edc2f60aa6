// NVML, opened when it is first needed.
#include "rensa/device/nvml.h"

#include <fmt/format.h>

#include <limits>

#include "rensa/core/error.h"

namespace rensa::cuda {

namespace {

/// nvmlReturn_t.
constexpr int kSuccess = 0, kNotSupported = 3, kNoPermission = 4, kFunctionNotFound = 13;
/// nvmlTemperatureSensors_t, nvmlClockType_t, nvmlPcieUtilCounter_t.
constexpr int kGpuSensor = 0, kSmClock = 1, kMemoryClock = 2, kPcieTx = 0, kPcieRx = 1;
/// Fields of nvmlDeviceGetFieldValues: KiB of data, of all links where the scope says so.
constexpr unsigned kNvlinkTx = 138, kNvlinkRx = 139;
constexpr unsigned kAllLinks = std::numeric_limits<unsigned>::max();
/// nvmlValueType_t.
constexpr int kDouble = 0, kUnsigned = 1;

}  // namespace

const LibrarySource& nvml_source() {
  static const LibrarySource source{
      "NVML",
      {"libnvidia-ml.so.1"},
      "",
      "it comes with NVIDIA's driver; a container has it where NVIDIA_DRIVER_CAPABILITIES names "
      "\"utility\""};
  return source;
}

Nvml::Nvml(const LibrarySource& source) : library_(source) {
  library_.bind("nvmlInit_v2", init_);
  library_.bind("nvmlErrorString", error_string_);
  library_.bind("nvmlDeviceGetHandleByPciBusId_v2", handle_by_pci_bus_id_);
  library_.bind_if_there("nvmlDeviceGetName", name_);
  library_.bind_if_there("nvmlDeviceGetUtilizationRates", utilization_);
  library_.bind_if_there("nvmlDeviceGetMemoryInfo", memory_);
  library_.bind_if_there("nvmlDeviceGetTemperature", temperature_);
  library_.bind_if_there("nvmlDeviceGetPowerUsage", power_);
  library_.bind_if_there("nvmlDeviceGetClockInfo", clock_);
  library_.bind_if_there("nvmlDeviceGetPcieThroughput", pcie_);
  library_.bind_if_there("nvmlDeviceGetFieldValues", fields_);
  // Never shut down: other parts of the process may use it until it ends.
  if (int result = init_(); result != kSuccess) {
    throw CudaError(fmt::format("NVML ({}): nvmlInit failed: {}; is the NVIDIA driver loaded?",
                                library_.path(), error_string_(result)));
  }
}

const Nvml& Nvml::instance() {
  static const Nvml nvml;
  return nvml;
}

bool Nvml::tells(const char* function, int result) const {
  if (result == kSuccess) return true;
  if (result == kNotSupported || result == kNoPermission || result == kFunctionNotFound) {
    return false;
  }
  throw CudaError(fmt::format("gpu_status: {} failed: {}", function, error_string_(result)));
}

template <class F, class... Args>
std::optional<double> Nvml::number(const char* name, F* function, Args... args) const {
  unsigned found = 0;
  if (!function || !tells(name, function(args..., &found))) return std::nullopt;
  return found;
}

void Nvml::add_nvlink(Device device, GpuStatus* status) const {
  FieldValue values[2] = {};
  values[0].field = kNvlinkTx, values[1].field = kNvlinkRx;
  values[0].scope = values[1].scope = kAllLinks;
  if (!fields_ || !tells("nvmlDeviceGetFieldValues", fields_(device, 2, values))) return;
  auto bytes_of = [](const FieldValue& value) -> std::optional<double> {
    if (value.result != kSuccess) return std::nullopt;  // a GPU without NVLink
    double kib = value.type == kDouble     ? value.value.real
                 : value.type == kUnsigned ? value.value.number
                                           : static_cast<double>(value.value.long_number);
    return 1024 * kib;
  };
  status->nvlink_sent = bytes_of(values[0]);
  status->nvlink_received = bytes_of(values[1]);
}

GpuStatus Nvml::status(const std::string& pci_bus_id) const {
  Device device = nullptr;
  if (int result = handle_by_pci_bus_id_(pci_bus_id.c_str(), &device); result != kSuccess) {
    throw CudaError(fmt::format("gpu_status: NVML gives no GPU at the PCI bus id \"{}\": {}",
                                pci_bus_id, error_string_(result)));
  }
  auto scaled = [](std::optional<double> value, double unit) {
    if (value) *value *= unit;
    return value;
  };
  GpuStatus status;
  status.pci_bus_id = pci_bus_id;
  char name[96] = "";
  if (name_ && tells("nvmlDeviceGetName", name_(device, name, sizeof(name)))) status.name = name;
  Utilization share{};
  if (utilization_ && tells("nvmlDeviceGetUtilizationRates", utilization_(device, &share))) {
    status.utilization = share.gpu, status.memory_utilization = share.memory;
  }
  Memory memory{};
  if (memory_ && tells("nvmlDeviceGetMemoryInfo", memory_(device, &memory))) {
    status.memory_used = static_cast<double>(memory.used);
    status.memory_total = static_cast<double>(memory.total);
  }
  status.temperature = number("nvmlDeviceGetTemperature", temperature_, device, kGpuSensor);
  status.power = scaled(number("nvmlDeviceGetPowerUsage", power_, device), 1e-3);  // of mW
  status.sm_clock = number("nvmlDeviceGetClockInfo", clock_, device, kSmClock);
  status.memory_clock = number("nvmlDeviceGetClockInfo", clock_, device, kMemoryClock);
  const char* pcie = "nvmlDeviceGetPcieThroughput";
  status.pcie_tx = scaled(number(pcie, pcie_, device, kPcieTx), 1e3);  // of kB
  status.pcie_rx = scaled(number(pcie, pcie_, device, kPcieRx), 1e3);
  add_nvlink(device, &status);
  return status;
}

}  // namespace rensa::cuda

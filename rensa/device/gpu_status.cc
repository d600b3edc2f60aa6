// What GPUs are doing.
#include "rensa/device/gpu_status.h"

#include "rensa/core/error.h"
#include "rensa/device/devices.h"
#include "rensa/device/nvml.h"

namespace rensa::cuda {

GpuStatus gpu_status(Device device) {
  check_device(device);
  if (device.is_cpu()) throw DeviceError("gpu_status: cpu is no GPU; name one with gpu(i)");
  return gpu_status(device.pci_bus_id());
}

GpuStatus gpu_status(const std::string& pci_bus_id) { return Nvml::instance().status(pci_bus_id); }

}  // namespace rensa::cuda

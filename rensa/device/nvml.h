// NVML, the driver's library that tells what GPUs are doing. Its header is in no package that a
// build needs, so the few functions are declared here.
#pragma once

#include <string>

#include "rensa/device/gpu_status.h"
#include "rensa/device/library.h"

namespace rensa::cuda {

const LibrarySource& nvml_source();

class Nvml {
 public:
  /// Opens it. Throws CudaError where it is missing, and where it finds no driver.
  explicit Nvml(const LibrarySource& source = nvml_source());
  /// The process's, opened by the first call that can.
  static const Nvml& instance();

  /// Throws CudaError that names the function which failed. Threads may ask at once.
  GpuStatus status(const std::string& pci_bus_id) const;

 private:
  using Device = void*;
  struct Utilization {
    unsigned gpu, memory;
  };
  struct Memory {
    unsigned long long total, free, used;
  };
  struct FieldValue {
    unsigned field, scope;
    long long timestamp, latency;
    int type, result;
    union {
      double real;
      unsigned number;
      unsigned long long long_number;
    } value;
  };
  static_assert(sizeof(FieldValue) == 40);

  /// Whether `result` is success; false where this GPU or driver does not tell. Throws CudaError
  /// for another one.
  bool tells(const char* function, int result) const;
  template <class F, class... Args>
  std::optional<double> number(const char* name, F* function, Args... args) const;
  void add_nvlink(Device device, GpuStatus* status) const;

  Library library_;
  // Without these there is nothing to ask.
  int (*init_)() = nullptr;
  const char* (*error_string_)(int) = nullptr;
  int (*handle_by_pci_bus_id_)(const char*, Device*) = nullptr;
  // An older library may lack some of these.
  int (*name_)(Device, char*, unsigned) = nullptr;
  int (*utilization_)(Device, Utilization*) = nullptr;
  int (*memory_)(Device, Memory*) = nullptr;
  int (*temperature_)(Device, int sensor, unsigned*) = nullptr;
  int (*power_)(Device, unsigned*) = nullptr;
  int (*clock_)(Device, int clock, unsigned*) = nullptr;
  int (*pcie_)(Device, int counter, unsigned*) = nullptr;
  int (*fields_)(Device, int count, FieldValue*) = nullptr;
};

}  // namespace rensa::cuda

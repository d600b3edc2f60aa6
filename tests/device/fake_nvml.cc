// A library with NVML's functions (libnvidia-ml.so.1) for two GPUs that are not there. A test sets
// what it says by fake_nvml_set("1/power", 250000), and with which error a function fails by
// fake_nvml_set("1/power/error", 999) or "init/error".
#include <strings.h>

#include <cstdio>
#include <map>
#include <mutex>
#include <string>

namespace {

std::mutex mutex;
std::map<std::string, double>& values() {
  static std::map<std::string, double> all;
  return all;
}

double value(const std::string& key) {
  std::lock_guard lock(mutex);
  auto found = values().find(key);
  return found == values().end() ? 0 : found->second;
}

int gpus[2] = {0, 1};

std::string key_of(const void* gpu, const char* name) {
  return std::to_string(*static_cast<const int*>(gpu)) + "/" + name;
}

int tell(const void* gpu, const char* name, unsigned* out) {
  std::string key = key_of(gpu, name);
  *out = static_cast<unsigned>(value(key));
  return static_cast<int>(value(key + "/error"));
}

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default")))

FAKE void fake_nvml_set(const char* key, double to) {
  std::lock_guard lock(mutex);
  values()[key] = to;
}
FAKE void fake_nvml_reset() {
  std::lock_guard lock(mutex);
  values().clear();
}

FAKE int nvmlInit_v2() { return static_cast<int>(value("init/error")); }

FAKE const char* nvmlErrorString(int result) {
  return result == 6 ? "Not Found" : result == 9 ? "Driver Not Loaded" : "Unknown Error";
}

FAKE int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** gpu) {
  const char* ids[2] = {"0000:18:00.0", "0000:B3:00.0"};
  for (int i = 0; i < 2; ++i) {
    if (strcasecmp(bus, ids[i]) != 0) continue;
    *gpu = &gpus[i];
    return 0;
  }
  return 6;
}

FAKE int nvmlDeviceGetName(void* gpu, char* name, unsigned size) {
  std::snprintf(name, size, "%s", key_of(gpu, "Fake GPU").c_str());
  return 0;
}

FAKE int nvmlDeviceGetUtilizationRates(void* gpu, unsigned* rates) {
  int result = tell(gpu, "utilization", &rates[0]);
  return result ? result : tell(gpu, "memory_utilization", &rates[1]);
}

FAKE int nvmlDeviceGetMemoryInfo(void* gpu, unsigned long long* memory) {
  memory[0] = static_cast<unsigned long long>(value(key_of(gpu, "memory_total")));
  memory[2] = static_cast<unsigned long long>(value(key_of(gpu, "memory_used")));
  memory[1] = memory[0] - memory[2];
  return static_cast<int>(value(key_of(gpu, "memory/error")));
}

FAKE int nvmlDeviceGetTemperature(void* gpu, int sensor, unsigned* out) {
  return sensor == 0 ? tell(gpu, "temperature", out) : 2;
}

FAKE int nvmlDeviceGetPowerUsage(void* gpu, unsigned* out) { return tell(gpu, "power", out); }

FAKE int nvmlDeviceGetClockInfo(void* gpu, int clock, unsigned* out) {
  return clock == 1 ? tell(gpu, "sm_clock", out) : clock == 2 ? tell(gpu, "memory_clock", out) : 2;
}

FAKE int nvmlDeviceGetPcieThroughput(void* gpu, int counter, unsigned* out) {
  return counter == 0 ? tell(gpu, "pcie_tx", out) : counter == 1 ? tell(gpu, "pcie_rx", out) : 2;
}

/// As nvml.h has it.
struct FieldValue {
  unsigned field, scope;
  long long timestamp, latency;
  int type, result;
  unsigned long long number;
};

FAKE int nvmlDeviceGetFieldValues(void* gpu, int count, FieldValue* fields) {
  for (int i = 0; i < count; ++i) {
    const char* name = fields[i].field == 138   ? "nvlink_tx"
                       : fields[i].field == 139 ? "nvlink_rx"
                                                : nullptr;
    fields[i].result = name && fields[i].scope == ~0u ? 0 : 2;
    if (fields[i].result) continue;
    fields[i].type = 3;  // unsigned long long
    fields[i].number = static_cast<unsigned long long>(value(key_of(gpu, name)));
    fields[i].result = static_cast<int>(value(key_of(gpu, name) + "/error"));
  }
  return 0;
}

// GpuMonitor: how busy, full, warm and fast GPUs are while a run goes on.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rensa/device/gpu_status.h"
#include "rensa/training/trainer.h"

namespace rensa::extensions {

struct GpuMonitorOptions {
  rensa::detail::NamedOptions named = {};
  std::vector<Device> devices = {};  // all that the process sees when empty
  /// Seconds from one sample to the next, taken by a thread of its own; 0: a sample is taken when
  /// the extension is called, and no thread.
  double interval = 1;
};

/// Where samples come from, and the name that they are reported under.
struct GpuSource {
  std::string name;
  std::function<cuda::GpuStatus()> status;  // called by the extension's thread
};

/// Observes, when it is called, means over the samples since it was called last: of each GPU
/// "gpu0/utilization" and "gpu0/memory_utilization" (percent), "gpu0/memory_used" and
/// "gpu0/memory_total" (bytes), "gpu0/temperature" (Celsius), "gpu0/power" (watts),
/// "gpu0/sm_clock" and "gpu0/memory_clock" (MHz), "gpu0/pcie_tx", "gpu0/pcie_rx",
/// "gpu0/nvlink_tx" and "gpu0/nvlink_rx" (bytes per second); and the greatest as
/// "gpu0/utilization/max" and so on. What a GPU does not tell is left out. Called after each epoch
/// unless it is given another trigger: that of the LogReport. Waits for no stream; it samples at
/// once where no sample has been taken since. What the thread met is thrown by the next call.
class GpuMonitor final : public training::Extension {
 public:
  /// Looks at each GPU. Throws DeviceError where there is none, CudaError where NVML is missing
  /// (cuda::gpu_status), ValueError for an interval outside of 0 to 86400.
  explicit GpuMonitor(const GpuMonitorOptions& options = {});
  /// Of any others: {{"other", [] { return cuda::gpu_status("0000:18:00.0"); }}}.
  GpuMonitor(std::vector<GpuSource> sources, double interval);
  /// Starts the thread.
  void initialize(training::Trainer& trainer) override;
  void operator()(training::Trainer& trainer) override;
  /// Ends the thread.
  void finalize() override;
  std::string default_name() const override { return "GpuMonitor"; }
  training::Trigger default_trigger() const override { return {1, "epoch"}; }
  int default_priority() const override { return training::kPriorityWriter; }

 private:
  class Sampler;
  std::shared_ptr<Sampler> sampler_;
};

}  // namespace rensa::extensions

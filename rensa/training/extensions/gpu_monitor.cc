// GpuMonitor.
#include "rensa/training/extensions/gpu_monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "rensa/array/creation.h"
#include "rensa/core/error.h"
#include "rensa/device/devices.h"

namespace rensa::extensions {

namespace {

using Clock = std::chrono::steady_clock;

struct Field {
  const char* name;
  std::optional<double> cuda::GpuStatus::*value;
};
constexpr Field kFields[] = {
    {"utilization", &cuda::GpuStatus::utilization},
    {"memory_utilization", &cuda::GpuStatus::memory_utilization},
    {"memory_used", &cuda::GpuStatus::memory_used},
    {"memory_total", &cuda::GpuStatus::memory_total},
    {"temperature", &cuda::GpuStatus::temperature},
    {"power", &cuda::GpuStatus::power},
    {"sm_clock", &cuda::GpuStatus::sm_clock},
    {"memory_clock", &cuda::GpuStatus::memory_clock},
    {"pcie_tx", &cuda::GpuStatus::pcie_tx},
    {"pcie_rx", &cuda::GpuStatus::pcie_rx},
};
/// Counters, of which two samples give what passes in a second.
constexpr Field kCounters[] = {
    {"nvlink_tx", &cuda::GpuStatus::nvlink_sent},
    {"nvlink_rx", &cuda::GpuStatus::nvlink_received},
};

std::vector<GpuSource> sources_of(const std::vector<Device>& devices) {
  std::vector<Device> all = devices;
  if (all.empty()) {
    for (int i = 0; i < num_gpus(); ++i) all.push_back(gpu(i));
  }
  if (all.empty()) all.push_back(gpu(0));  // which says why there is none
  std::vector<GpuSource> sources;
  for (Device device : all) {
    std::string pci_bus_id;
    try {
      check_device(device);
      pci_bus_id = device.pci_bus_id();
    } catch (const DeviceError& error) {
      throw DeviceError(std::string("GpuMonitor: ") + error.what());
    }
    sources.push_back({fmt::format("gpu{}", device.index),
                       [pci_bus_id] { return cuda::gpu_status(pci_bus_id); }});
  }
  return sources;
}

}  // namespace

/// Takes samples, and adds them up until they are asked for.
class GpuMonitor::Sampler {
 public:
  Sampler(std::vector<GpuSource> sources, double interval)
      : interval_(interval), gpus_(sources.size()) {
    if (!(interval >= 0 && interval <= 86400)) {
      throw ValueError(
          fmt::format("GpuMonitor: an interval of {} seconds; give 0 to 86400", interval));
    }
    if (sources.empty()) throw ValueError("GpuMonitor: no GPU to look at");
    for (std::size_t i = 0; i < sources.size(); ++i) {
      gpus_[i].source = std::move(sources[i]);
      (void)gpus_[i].source.status();  // so that what fails does so here
    }
  }
  ~Sampler() { stop(); }

  void start() {
    if (interval_ == 0 || thread_.joinable()) return;
    ended_ = false;
    thread_ = std::thread([this] { work(); });
  }

  void stop() {
    {
      std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  void report(Observation& observation) {
    std::map<std::string, Sum> sums = take();
    if (sums.empty()) {
      sample();
      sums = take();
    }
    for (const auto& [key, sum] : sums) {
      observation[key] = xp::array(sum.total / sum.count, cpu());
      observation[key + "/max"] = xp::array(sum.greatest, cpu());
    }
  }

 private:
  struct Counter {
    double value;
    Clock::time_point time;
  };
  struct Gpu {
    GpuSource source;
    std::map<std::string, Counter> counters;  // of the sample before
  };
  struct Sum {
    double total = 0, count = 0, greatest = 0;
  };

  std::map<std::string, Sum> take() {
    std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    return std::exchange(sums_, {});
  }

  void add(const std::string& key, double value) {
    std::lock_guard lock(mutex_);
    Sum& sum = sums_[key];
    sum.greatest = sum.count == 0 ? value : std::max(sum.greatest, value);
    sum.total += value, ++sum.count;
  }

  void sample() {
    std::lock_guard one(sampling_);
    for (Gpu& gpu : gpus_) {
      const cuda::GpuStatus status = gpu.source.status();
      const Clock::time_point now = Clock::now();
      for (const Field& field : kFields) {
        if (auto value = status.*field.value) add(gpu.source.name + "/" + field.name, *value);
      }
      for (const Field& field : kCounters) {
        auto value = status.*field.value;
        if (!value) continue;
        auto before = gpu.counters.find(field.name);
        if (before != gpu.counters.end()) {
          std::chrono::duration<double> seconds = now - before->second.time;
          double passed = *value - before->second.value;
          // A counter that was set back tells nothing.
          if (passed >= 0 && seconds.count() > 0) {
            add(gpu.source.name + "/" + field.name, passed / seconds.count());
          }
        }
        gpu.counters[field.name] = {*value, now};
      }
    }
  }

  /// The thread.
  void work() {
    std::unique_lock lock(mutex_);
    while (!ended_ && !error_) {
      lock.unlock();
      std::exception_ptr error;
      try {
        sample();
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      if (error) error_ = error;
      changed_.wait_for(lock, std::chrono::duration<double>(interval_), [this] { return ended_; });
    }
  }

  const double interval_;
  std::mutex sampling_;  // held while a sample is taken: the thread, or who asks
  std::vector<Gpu> gpus_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::map<std::string, Sum> sums_;
  std::exception_ptr error_;
  bool ended_ = false;
  std::thread thread_;
};

GpuMonitor::GpuMonitor(const GpuMonitorOptions& options)
    : GpuMonitor(sources_of(options.devices), options.interval) {}

GpuMonitor::GpuMonitor(std::vector<GpuSource> sources, double interval)
    : sampler_(std::make_shared<Sampler>(std::move(sources), interval)) {}

void GpuMonitor::initialize(training::Trainer&) { sampler_->start(); }

void GpuMonitor::operator()(training::Trainer& trainer) { sampler_->report(trainer.observation()); }

void GpuMonitor::finalize() { sampler_->stop(); }

}  // namespace rensa::extensions

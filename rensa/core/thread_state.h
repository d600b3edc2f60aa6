// What a thread of the library runs under: configuration, current device and streams. A thread that
// Rensa starts gets a copy of its creator's (ThreadState::install).
#pragma once

#include <array>
#include <memory>

#include "rensa/core/device.h"
#include "rensa/core/dtype.h"

namespace rensa {

class Recorder;  // device/launcher.h
class Reporter;  // links/reporter.h
namespace cuda {
class StreamState;
}  // namespace cuda

/// Chainer's configuration (chainer.config), with the fields' defaults.
struct Config {
  bool train = true;            // dropout and friends behave as in training
  bool enable_backprop = true;  // functions link their outputs into a graph
  bool debug = false;           // NaN checks after each forward and backward
  bool keep_graph_on_report = false;
  bool tf32 = false;             // float32 products on the GPU may round inputs to TF32
  bool autotune = false;         // library plans are chosen by timing instead of by heuristic
  Dtype dtype = Dtype::float32;  // of parameters and random numbers
};

struct ThreadState {
  Config config;
  Device device;  // current device: where creation routines put arrays
  std::array<std::shared_ptr<cuda::StreamState>, kMaxGpus> streams;  // null: the device's default
  std::shared_ptr<Reporter> reporter;
  Recorder* recorder = nullptr;  // the recording in progress on this thread; never copied

  /// The calling thread's.
  static ThreadState& current();
  /// A copy for another thread: everything but the recording.
  ThreadState snapshot() const;
  /// Makes `state` the calling thread's.
  static void install(ThreadState state);
};

/// The calling thread's configuration.
inline Config& config() { return ThreadState::current().config; }

/// Sets one field of the configuration for a scope: `UsingConfig off(&Config::train, false);`
template <class T> class [[nodiscard]] UsingConfig {
 public:
  [[nodiscard]] UsingConfig(T Config::*field, T value) : field_(field), previous_(config().*field) {
    config().*field_ = value;
  }
  ~UsingConfig() { config().*field_ = previous_; }
  UsingConfig(const UsingConfig&) = delete;
  UsingConfig& operator=(const UsingConfig&) = delete;

 private:
  using Field = T Config::*;  // nvcc warns of the declarator that it makes of it without a name
  Field field_;
  T previous_;
};

/// Functions applied in this scope link no graph.
class [[nodiscard]] no_backprop_mode : UsingConfig<bool> {
 public:
  [[nodiscard]] no_backprop_mode() : UsingConfig(&Config::enable_backprop, false) {}
};
/// Functions applied in this scope link a graph, whatever the scope around says.
class [[nodiscard]] force_backprop_mode : UsingConfig<bool> {
 public:
  [[nodiscard]] force_backprop_mode() : UsingConfig(&Config::enable_backprop, true) {}
};

/// `with device:` creation routines of this scope put arrays on `device`.
class [[nodiscard]] DeviceScope {
 public:
  /// Throws DeviceError for a GPU that is not there.
  [[nodiscard]] explicit DeviceScope(Device device);
  ~DeviceScope() { ThreadState::current().device = previous_; }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  Device previous_;
};

}  // namespace rensa

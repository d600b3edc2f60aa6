// What a thread of the library runs under: configuration, current device and streams. A thread that
// Rensa starts gets a copy of its creator's (ThreadState::install).
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <type_traits>

#include "rensa/core/device.h"
#include "rensa/core/dtype.h"
#include "rensa/core/use_cudnn.h"
#include "rensa/core/use_tf32.h"

namespace rensa {

class Recorder;  // device/launcher.h
class Reporter;  // links/reporter.h
namespace cuda {
class StreamState;
}  // namespace cuda

/// What config().dtype may be: a dtype, or one of 16 bits beside float32 (mixed16, mixed_bf16).
class DefaultDtype {
 public:
  constexpr DefaultDtype(Dtype dtype) : dtype_(dtype) {}
  /// `dtype`, but float32 for what has to be more precise: parameters and statistics of
  /// normalizations.
  static constexpr DefaultDtype mixed(Dtype dtype) {
    DefaultDtype made(dtype);
    made.mixed_ = true;
    return made;
  }
  constexpr operator Dtype() const { return dtype_; }  // of most parameters
  constexpr bool is_mixed() const { return mixed_; }   // whether it is mixed(dtype)
  friend constexpr bool operator==(DefaultDtype a, DefaultDtype b) = default;
  /// With what get_dtype() gives.
  friend constexpr bool operator==(DefaultDtype a, Dtype b) { return a.dtype_ == b; }

 private:
  Dtype dtype_;
  bool mixed_ = false;
};

/// chainer.mixed16: float16, with normalizations in float32.
inline constexpr DefaultDtype mixed16 = DefaultDtype::mixed(Dtype::float16);
/// The same of bfloat16.
inline constexpr DefaultDtype mixed_bf16 = DefaultDtype::mixed(Dtype::bfloat16);

/// Chainer's configuration (chainer.config), with the fields' defaults.
struct Config {
  bool train = true;                  // dropout and friends behave as in training
  bool enable_backprop = true;        // functions link their outputs into a graph
  bool debug = false;                 // NaN checks after each forward and backward
  bool keep_graph_on_report = false;  // reported variables keep their graphs (Reporter::keep_graph)
  UseTf32 tf32 = false;               // whether float32 products on the GPU may go by TF32
  bool autotune = false;              // library plans are chosen by timing instead of by heuristic
  bool cudnn_deterministic = true;    // what cuDNN computes has the same bits every time
  UseCudnn use_cudnn = UseCudnn::automatic;  // which convolutions are cuDNN's
  DefaultDtype dtype = Dtype::float32;       // of parameters
  std::optional<Dtype> autocast;             // what an Autocast scope computes products in
};

/// What the library knows of a thread.
struct ThreadState {
  Config config;  // as config() gives it
  Device device;  // current device: where creation routines put arrays
  std::array<std::shared_ptr<cuda::StreamState>, kMaxGpus> streams;  // null: the device's default
  std::shared_ptr<Reporter> reporter;  // the current one; null where nothing is reported
  Recorder* recorder = nullptr;        // the recording in progress on this thread; never copied

  /// The calling thread's.
  static ThreadState& current();
  /// A copy for another thread: everything but the recording.
  ThreadState snapshot() const;
  /// Makes `state` the calling thread's.
  static void install(ThreadState state);
};

/// The calling thread's configuration.
inline Config& config() { return ThreadState::current().config; }

/// chainer.get_dtype: `dtype`; that of the configuration when it is left out, or `map_mixed`, where
/// given, when that is mixed.
inline Dtype get_dtype(std::optional<Dtype> dtype = std::nullopt,
                       std::optional<Dtype> map_mixed = std::nullopt) {
  if (dtype) return *dtype;
  DefaultDtype configured = config().dtype;
  return map_mixed && configured.is_mixed() ? *map_mixed : Dtype(configured);
}

/// Sets one field of the configuration for a scope: `UsingConfig off(&Config::train, false);`
template <class T> class [[nodiscard]] UsingConfig {
 public:
  [[nodiscard]] UsingConfig(T Config::*field, std::type_identity_t<T> value)
      : field_(field), previous_(config().*field) {
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

// The names by which Chainer's module cuda (chainer.backends.cuda) gives devices and arrays.
//
//   DeviceScope on(cuda::get_device_from_array(x));  // the GPU that x is on; nothing for the CPU
#pragma once

#include <concepts>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <string>

#include "rensa/array/array.h"
#include "rensa/array/creation.h"
#include "rensa/array/index.h"
#include "rensa/core/device.h"

namespace rensa::cuda {

// CuPy's names that Chainer's module passes on. Streams, events and pools stand in this namespace
// anyway.
namespace cupy = rensa::xp;
using rensa::Device;
using rensa::to_cpu;
using rensa::to_gpu;
using rensa::xp::array;
using rensa::xp::empty;

/// A GPU, or Chainer's dummy device. The dummy stands for whichever device is current: its scope,
/// `DeviceScope on(dummy)`, and its use() change nothing.
class DeviceOrDummy {
 public:
  /// The dummy.
  constexpr DeviceOrDummy() = default;
  constexpr DeviceOrDummy(Device device) : device_(device) {}

  constexpr bool is_dummy() const { return !device_; }  // of what is on no GPU
  /// The device; of the dummy the calling thread's current one.
  operator Device() const;
  /// Device::use(); nothing for the dummy.
  void use() const;
  /// "cuda:0", or "dummy".
  std::string str() const;

  /// The dummy equals itself alone, also where the other is the current device.
  friend constexpr bool operator==(const DeviceOrDummy& a, const DeviceOrDummy& b) {
    return a.device_ == b.device_;
  }
  friend constexpr bool operator==(const DeviceOrDummy& a, Device b) { return a.device_ == b; }

 private:
  std::optional<Device> device_;
};
std::ostream& operator<<(std::ostream& os, const DeviceOrDummy& device);

/// What tells its device: arrays and variables.
template <class A>
concept HasDevice = requires(const A& a) {
  { a.device() } -> std::same_as<Device>;
};

/// The first GPU among `devices`; the dummy where there is none.
DeviceOrDummy first_gpu(std::initializer_list<Device> devices);

/// GPU `id`, where gpu(id) would only name it: throws DeviceError, which says how many GPUs there
/// are, for one that is not there.
Device get_device_from_id(int id);
/// The dummy.
DeviceOrDummy get_device_from_id(None);

/// The first GPU that one of the arrays or variables is on; the dummy where all are on the CPU.
template <HasDevice... A>
requires(sizeof...(A) > 0) DeviceOrDummy get_device_from_array(const A&... arrays) {
  return first_gpu({arrays.device()...});
}

// Chainer's older name for both. The difference is in `none`: get_device(none) is the current
// device, as it is now.
Device get_device(int id);
Device get_device(None);
template <HasDevice... A>
requires(sizeof...(A) > 0) DeviceOrDummy get_device(const A&... arrays) {
  return first_gpu({arrays.device()...});
}

/// There is no module to choose: what stands in xp is for arrays of all devices.
template <class... A> auto get_array_module(const A&...) {
  static_assert(
      rensa::detail::kWrong<A...>,
      "xp is there for all devices: write xp::exp(x), which runs where x is; whether that is a GPU "
      "is x.device().is_cuda()");
  return 0;
}

}  // namespace rensa::cuda

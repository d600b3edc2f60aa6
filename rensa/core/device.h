// Device: the name of a place where arrays live. Naming one touches no hardware.
#pragma once

#include <compare>
#include <iosfwd>
#include <string>
#include <string_view>

namespace rensa {

enum class DeviceType : unsigned char { cpu, cuda };

struct Device {
  DeviceType type = DeviceType::cpu;
  short index = 0;

  constexpr Device() = default;
  constexpr Device(DeviceType t, int i) : type(t), index(static_cast<short>(i)) {}
  /// Parses "cpu", "cuda", "cuda:1", "gpu:1", and Chainer's "@numpy" and "@cupy:1".
  /// Throws DeviceError for anything else.
  explicit Device(std::string_view text);

  constexpr bool is_cpu() const { return type == DeviceType::cpu; }
  constexpr bool is_cuda() const { return type == DeviceType::cuda; }
  /// "cpu" or "cuda:0".
  std::string str() const;

  /// Makes this the calling thread's current device. Throws DeviceError for a GPU that is not
  /// there.
  void use() const;

  constexpr auto operator<=>(const Device&) const = default;
};

constexpr Device cpu() { return {DeviceType::cpu, 0}; }
constexpr Device gpu(int index = 0) { return {DeviceType::cuda, index}; }
/// The calling thread's current device where that is a GPU, else GPU 0: what to_gpu() means.
Device current_gpu();

std::ostream& operator<<(std::ostream& os, const Device& device);

/// Most GPUs of one process that the library keeps state for.
inline constexpr int kMaxGpus = 16;

}  // namespace rensa

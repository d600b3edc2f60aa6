// Device: the name of a place where arrays live. Naming one touches no hardware.
#pragma once

#include <compare>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <string_view>

namespace rensa {

enum class DeviceType : unsigned char { cpu, cuda };  // of a Device: the CPU, or a GPU of NVIDIA's

/// Most GPUs of one process that the library keeps state for.
inline constexpr int kMaxGpus = 16;

namespace cuda {
/// Bytes of a GPU's memory.
struct MemoryInfo {
  std::int64_t free, total;  // of the whole GPU, whoever has it
};
}  // namespace cuda

struct Device {
  DeviceType type = DeviceType::cpu;  // the CPU, or a GPU
  short index = 0;

  constexpr Device() = default;
  /// Throws DeviceError for an index outside of [0, kMaxGpus).
  constexpr Device(DeviceType t, int i) : type(t), index(static_cast<short>(i)) {
    if (i < 0 || i >= kMaxGpus) throw_no_index(i);
  }
  /// Parses "cpu", "cuda", "cuda:1", "gpu", "gpu:1", and Chainer's "@numpy" and "@cupy:1". Throws
  /// DeviceError for anything else.
  explicit Device(std::string_view text);

  constexpr bool is_cpu() const { return type == DeviceType::cpu; }    // whether it is the CPU
  constexpr bool is_cuda() const { return type == DeviceType::cuda; }  // whether it is a GPU
  /// "cpu" or "cuda:0".
  std::string str() const;

  // --- of the hardware behind the name. All but synchronize() are of GPUs and ---
  // throw DeviceError for the CPU; all throw it for a GPU that is not there. None waits but
  // synchronize().
  /// Waits for everything queued on it, as cuda::synchronize; nothing to do for the CPU.
  void synchronize() const;
  /// "NVIDIA H200".
  std::string name() const;
  /// "90" for 9.0.
  std::string compute_capability() const;
  /// "0000:18:00.0".
  std::string pci_bus_id() const;
  cuda::MemoryInfo mem_info() const;  // free and total bytes of its memory
  /// What cudaDeviceGetAttribute knows, by the names that CuPy gives it: "MultiProcessorCount".
  std::map<std::string, int> attributes() const;

  /// Makes this the calling thread's current device. Throws DeviceError for a GPU that is not
  /// there.
  void use() const;

  constexpr auto operator<=>(const Device&) const = default;

 private:
  [[noreturn]] static void throw_no_index(int i);
};

constexpr Device cpu() { return {DeviceType::cpu, 0}; }  // the CPU
/// GPU `index`. Throws DeviceError for an index outside of [0, kMaxGpus).
constexpr Device gpu(int index = 0) { return {DeviceType::cuda, index}; }
/// The calling thread's current device where that is a GPU, else GPU 0: what to_gpu() means.
Device current_gpu();

std::ostream& operator<<(std::ostream& os, const Device& device);

}  // namespace rensa

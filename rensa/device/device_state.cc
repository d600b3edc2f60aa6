// The state of each GPU, set up at its first use.
#include "rensa/device/device_state.h"

#include <array>
#include <atomic>
#include <mutex>

#include "rensa/core/error.h"
#include "rensa/device/cuda_runtime.h"
#include "rensa/device/devices.h"
#include "rensa/device/pool_options.h"
#include "rensa/device/stream.h"

namespace rensa::cuda {

namespace {

std::shared_ptr<StreamState> make_default_stream(Device device) {
  auto stream = std::make_shared<StreamState>(
      device, runtime::create_stream(device, default_stream_flags, 0), true);
  stream->reserve();
  return stream;
}

std::shared_ptr<StreamState> make_legacy_stream(Device device) {
  auto stream = std::make_shared<StreamState>(device, runtime::legacy_stream(), false);
  stream->reserve();
  return stream;
}

DeviceState* make_state(Device device) {
  auto state = std::make_unique<DeviceState>(device);
  limit_from_environment(state->pool);
  return state.release();
}

}  // namespace

DeviceState::DeviceState(Device device)
    : default_stream(make_default_stream(device)),
      legacy_stream(make_legacy_stream(device)),
      error_word(runtime::make_error_word(device, &error_word_on_device)),
      pool(device, runtime::device_source(device)) {}

DeviceState& device_state(Device device) {
  static std::array<std::atomic<DeviceState*>, kMaxGpus> states{};
  static std::mutex mutex;
  if (device.is_cpu()) throw DeviceError("cpu has no streams and no memory pool; name a GPU");
  check_device(device);
  auto& state = states[static_cast<std::size_t>(device.index)];
  if (DeviceState* known = state.load(std::memory_order_acquire)) return *known;
  std::lock_guard<std::mutex> hold(mutex);
  if (!state.load(std::memory_order_relaxed)) {
    state.store(make_state(device), std::memory_order_release);
  }
  return *state.load(std::memory_order_relaxed);
}

MemoryPool& memory_pool(Device device) { return device_state(device).pool; }

MemoryPool& pinned_memory_pool() {
  // Never destroyed, as the devices' pools. Not one for the process before there is a GPU.
  static MemoryPool* pool = [] {
    check_device(gpu(0));
    return new MemoryPool(cpu(), runtime::pinned_source(), true);
  }();
  return *pool;
}

}  // namespace rensa::cuda

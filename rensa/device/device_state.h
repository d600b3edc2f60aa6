// What the library keeps for a GPU from its first use to the end of the process: its streams, the
// word that kernels report errors in, and the memory pool.
#pragma once

#include <memory>

#include "rensa/device/error_word.h"
#include "rensa/device/launcher.h"
#include "rensa/device/memory_pool.h"
#include "rensa/device/stream_state.h"

namespace rensa::cuda {

struct DeviceState {
  explicit DeviceState(Device device);

  std::shared_ptr<StreamState> default_stream;  // the library's own; waits for the legacy stream
  std::shared_ptr<StreamState> legacy_stream;
  void* error_word_on_device = nullptr;
  ErrorWord* error_word;
  MemoryPool pool;
};

/// Made at the first call and never destroyed: arrays may outlive every other static object. Throws
/// DeviceError for a device that is not there.
DeviceState& device_state(Device device);

}  // namespace rensa::cuda

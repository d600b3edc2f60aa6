// Ranges and marks of NVTX.
#include "rensa/device/profiler.h"

#include "rensa/core/error.h"
#include "rensa/device/cuda_runtime.h"
#include "rensa/device/devices.h"

namespace rensa::cuda {

namespace profiler {

void start() {
  if (is_available()) runtime::start_profiler();
}
void stop() {
  if (is_available()) runtime::stop_profiler();
}

}  // namespace profiler

Profile::Profile() { profiler::start(); }
Profile::~Profile() {
  try {
    profiler::stop();
  } catch (const Error&) {
    // Of a device that has failed; its next user hears so.
  }
}

TimeRange::TimeRange(const std::string& message, std::uint32_t argb_color) {
  nvtx::range_push(message, argb_color);
}
TimeRange::~TimeRange() { nvtx::range_pop(); }

namespace nvtx {

void mark(const std::string& message) { runtime::mark(message.c_str()); }
void range_push(const std::string& message, std::uint32_t argb_color) {
  runtime::push_range(message.c_str(), argb_color);
}
void range_pop() { runtime::pop_range(); }

}  // namespace nvtx

}  // namespace rensa::cuda

// Streams, events, the current stream of a thread, and every wait for a device.
#include "rensa/device/stream.h"

#include <fmt/format.h>

#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/cuda_runtime.h"
#include "rensa/device/device_state.h"
#include "rensa/device/launcher.h"

namespace rensa::cuda {

namespace {

Device device_for_new_stream() {
  Device current = ThreadState::current().device;
  return current.is_cuda() ? current : gpu(0);
}

std::shared_ptr<StreamState>& current_slot(Device device) {
  return ThreadState::current().streams[static_cast<std::size_t>(device.index)];
}

}  // namespace

Stream::Stream(StreamFlags flags, int priority)
    : Stream(device_for_new_stream(), flags, priority) {}

Stream::Stream(Device device, StreamFlags flags, int priority) {
  device_state(device);  // says why it cannot be used
  void* handle = runtime::create_stream(device, flags, priority);
  state_ = std::make_shared<StreamState>(device, handle, true);
  state_->reserve();
}

Stream Stream::null(Device device) { return Stream(device_state(device).legacy_stream); }

Device Stream::device() const { return state_->device(); }
void* Stream::handle() const { return state_->handle(); }

void Stream::synchronize() const {
  count_sync("Stream.synchronize");
  runtime::set_device(device());
  runtime::synchronize_stream(handle());
  throw_reported_error(device());
}

bool Stream::done() const {
  runtime::set_device(device());
  return runtime::stream_done(handle());
}

void Stream::use() const { current_slot(device()) = state_; }

void order_foreign_stream(void* consumer, const Stream& producer) {
  if (consumer == producer.handle()) return;
  runtime::set_device(producer.device());
  struct Handle {
    void* event;
    ~Handle() { runtime::destroy_event(event); }  // once the driver is done with it
  } handle{runtime::create_event(producer.device(), false)};
  runtime::record_event(handle.event, producer.handle());
  runtime::wait_event(consumer, handle.event);
}

struct Event::State {
  explicit State(bool with_timing) : timing(with_timing) {}
  ~State() {
    if (handle) runtime::destroy_event(handle);
  }
  void* get() {
    std::lock_guard<std::mutex> hold(mutex);
    return handle;
  }

  const bool timing;
  std::mutex mutex;
  void* handle = nullptr;
  Device device;
};

void Stream::record(const Event& event) const {
  Event::State& state = *event.state_;
  std::lock_guard<std::mutex> hold(state.mutex);
  runtime::set_device(device());
  if (!state.handle) {
    state.handle = runtime::create_event(device(), state.timing);
    state.device = device();
  }
  if (state.device != device()) {
    throw DeviceError(
        fmt::format("record: the event belongs to {}, the stream to {}; use an event "
                    "for each device",
                    state.device.str(), device().str()));
  }
  runtime::record_event(state.handle, handle());
}

void Stream::wait(const Event& event) const {
  void* recorded = event.state_->get();
  if (!recorded) return;
  runtime::set_device(device());
  runtime::wait_event(handle(), recorded);
}

Event::Event(bool enable_timing) : state_(std::make_shared<State>(enable_timing)) {}

void Event::synchronize() const {
  count_sync("Event.synchronize");
  void* recorded = state_->get();
  if (!recorded) return;
  runtime::synchronize_event(recorded);
  throw_reported_error(state_->device);
}

bool Event::done() const {
  void* recorded = state_->get();
  return !recorded || runtime::event_done(recorded);
}

void* Event::handle() const { return state_->get(); }

float elapsed_time(const Event& start, const Event& stop) {
  if (!start.handle() || !stop.handle()) {
    throw ValueError("elapsed_time: both events must have been recorded");
  }
  return runtime::elapsed_ms(start.handle(), stop.handle());
}

Stream current_stream(Device device) {
  DeviceState& state = device_state(device);
  const auto& own = current_slot(device);
  return Stream(own ? own : state.default_stream);
}

StreamState* current_stream_state(Device device) {
  DeviceState& state = device_state(device);
  StreamState* own = current_slot(device).get();
  return own ? own : state.default_stream.get();
}

StreamScope::StreamScope(const Stream& stream)
    : device_(stream.device()), previous_(current_slot(device_)) {
  stream.use();
}

StreamScope::~StreamScope() { current_slot(device_) = std::move(previous_); }

void synchronize(Device device) {
  if (device.is_cpu()) return;
  device_state(device);
  count_sync("synchronize");
  runtime::synchronize_device(device);
  throw_reported_error(device);
}

}  // namespace rensa::cuda

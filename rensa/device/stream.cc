// Streams, events, the current stream of a thread, and every wait for a device.
#include "rensa/device/stream.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <utility>

#include "rensa/core/environment.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/cuda_runtime.h"
#include "rensa/device/device_state.h"
#include "rensa/device/host_errors.h"
#include "rensa/device/launcher.h"
#include "rensa/device/stream_capture.h"
#include "rensa/device/timeline_span.h"

namespace rensa::cuda {

namespace {

Device device_for_new_stream() {
  Device current = ThreadState::current().device;
  return current.is_cuda() ? current : gpu(0);
}

std::shared_ptr<StreamState>& current_slot(Device device) {
  return ThreadState::current().streams[static_cast<std::size_t>(device.index)];
}

/// Streams of the driver that others made, so that one of them has one state.
struct ExternalStreams {
  std::mutex mutex;
  std::map<std::pair<int, void*>, std::weak_ptr<StreamState>> known;

  static ExternalStreams& instance() {
    static auto* streams = new ExternalStreams;
    return *streams;
  }
};

std::shared_ptr<StreamState> new_stream(Device device, unsigned flags, int priority) {
  device_state(device);  // says why it cannot be used
  void* handle = runtime::create_stream(device, flags, priority);
  auto state = std::make_shared<StreamState>(device, handle, true);
  state->reserve();
  return state;
}

const std::shared_ptr<StreamState>& own_stream(Device device) {
  thread_local std::array<std::shared_ptr<StreamState>, kMaxGpus> streams;
  device_state(device);
  auto& stream = streams[static_cast<std::size_t>(device.index)];
  if (!stream) stream = new_stream(device, default_stream_flags, 0);
  return stream;
}

std::atomic<bool>& per_thread_streams() {
  static std::atomic<bool> on{environment::flag("RENSA_PER_THREAD_STREAMS").value_or(false)};
  return on;
}

/// What the driver calls for launch_host_func. Nothing may be thrown into it.
void run_host_call(void* argument) {
  auto* call = static_cast<HostCall*>(argument);
  try {
    call->function();
  } catch (...) {
    report_host_error(call->device, std::current_exception());
  }
  if (call->once) delete call;
}

}  // namespace

Stream::Stream(StreamFlags flags, int priority)
    : Stream(device_for_new_stream(), flags, priority) {}

Stream::Stream(Device device, StreamFlags flags, int priority)
    : state_(new_stream(device, flags, priority)) {}

Stream Stream::null(Device device) { return Stream(device_state(device).legacy_stream); }

Stream Stream::external(void* handle, Device device) {
  device_state(device);
  auto& streams = ExternalStreams::instance();
  std::lock_guard<std::mutex> hold(streams.mutex);
  std::erase_if(streams.known, [](const auto& entry) { return entry.second.expired(); });
  auto& known = streams.known[{device.index, handle}];
  auto state = known.lock();
  if (!state) {
    runtime::set_device(device);
    state = std::make_shared<StreamState>(device, handle, false);
    state->reserve();
    known = state;
  }
  return Stream(state);
}

Stream Stream::per_thread(Device device) { return Stream(own_stream(device)); }

PriorityRange Stream::priority_range(Device device) {
  device_state(device);
  return runtime::priority_range(device);
}

Device Stream::device() const { return state_->device(); }
void* Stream::handle() const { return state_->handle(); }

int Stream::priority() const {
  runtime::set_device(device());
  return runtime::stream_priority(handle());
}

bool Stream::is_non_blocking() const {
  runtime::set_device(device());
  return runtime::stream_non_blocking(handle());
}

void Stream::synchronize() const {
  count_sync("Stream.synchronize");
  timeline::Span span(timeline::Kind::wait, "Stream.synchronize", device());
  runtime::set_device(device());
  runtime::synchronize_stream(handle());
  throw_reported_error(device());
}

bool Stream::done() const {
  runtime::set_device(device());
  return runtime::stream_done(handle());
}

void Stream::use() const { current_slot(device()) = state_; }

void Stream::launch_host_func(std::function<void()> function) const {
  auto call = std::make_unique<HostCall>(HostCall{std::move(function), device(), true});
  if (Recorder* recorder = ThreadState::current().recorder) {
    recorder->cannot_record("launch_host_func");
  }
  runtime::set_device(device());
  Capture* capture = state_->capture();
  call->once = !capture;
  runtime::launch_host_func(handle(), run_host_call, call.get());
  if (capture) {
    capture->keep(std::move(call));
  } else {
    (void)call.release();  // run_host_call deletes it
  }
}

void order_foreign_stream(void* consumer, const Stream& producer) {
  if (consumer == producer.handle()) return;
  order_handles(producer.device(), producer.handle(), consumer);
}

struct Event::State {
  explicit State(EventOptions how) : options(how) {}
  ~State() {
    if (handle) runtime::destroy_event(handle);
  }
  void* get() {
    std::lock_guard<std::mutex> hold(mutex);
    return handle;
  }

  const EventOptions options;
  std::mutex mutex;
  void* handle = nullptr;
  Device device;
  std::uint64_t captured_by = 0;  // the capture that the last record was part of
};

void Stream::record(const Event& event) const {
  Event::State& state = *event.state_;
  std::lock_guard<std::mutex> hold(state.mutex);
  runtime::set_device(device());
  if (!state.handle) {
    state.handle = runtime::create_event(device(), state.options);
    state.device = device();
  }
  if (state.device != device()) {
    throw DeviceError(
        fmt::format("record: the event belongs to {}, the stream to {}; use an event "
                    "for each device",
                    state.device.str(), device().str()));
  }
  runtime::record_event(state.handle, handle());
  state.captured_by = state_->capture() ? state_->capture()->id() : 0;
}

void Stream::wait(const Event& event) const {
  void* recorded = event.state_->get();
  if (!recorded) return;
  Capture* capture = Capture::current();
  if (capture && event.state_->captured_by == capture->id()) {
    capture->join(state_, recorded);
    return;
  }
  runtime::set_device(device());
  runtime::wait_event(handle(), recorded);
}

Event::Event(bool enable_timing) : Event(EventOptions{.timing = enable_timing}) {}

Event::Event(EventOptions options) : state_(std::make_shared<State>(options)) {
  if (options.interprocess && options.timing) {
    throw ValueError("Event: an interprocess event has no timing; give .timing = false as well");
  }
}

Event Event::from_ipc_handle(const std::string& bytes, Device device) {
  Event event(EventOptions{.timing = false});
  device_state(device);
  event.state_->handle = runtime::open_event(device, bytes);
  event.state_->device = device;
  return event;
}

void Event::record(const Stream& stream) const { stream.record(*this); }
void Event::record(Device device) const { current_stream(device).record(*this); }

void Event::synchronize() const {
  count_sync("Event.synchronize");
  timeline::Span span(timeline::Kind::wait, "Event.synchronize", state_->device);
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
bool Event::has_timing() const { return state_->options.timing; }

std::string Event::ipc_handle() const {
  if (!state_->options.interprocess || !handle()) {
    throw ValueError(
        "ipc_handle: the event must be made with .interprocess = true, .timing = false, and "
        "recorded once");
  }
  return runtime::event_ipc_handle(handle());
}

float elapsed_time(const Event& start, const Event& stop) {
  if (!start.handle() || !stop.handle()) {
    throw ValueError("elapsed_time: both events must have been recorded");
  }
  if (!start.has_timing() || !stop.has_timing()) {
    throw ValueError("elapsed_time: an event was made without timing");
  }
  return runtime::elapsed_ms(start.handle(), stop.handle());
}

Stream current_stream(Device device) {
  DeviceState& state = device_state(device);
  const auto& own = current_slot(device);
  if (!own && per_thread_streams().load(std::memory_order_relaxed))
    return Stream::per_thread(device);
  return Stream(own ? own : state.default_stream);
}

StreamState* current_stream_state(Device device) {
  DeviceState& state = device_state(device);
  if (StreamState* own = current_slot(device).get()) return own;
  if (per_thread_streams().load(std::memory_order_relaxed)) return own_stream(device).get();
  return state.default_stream.get();
}

void set_per_thread_streams(bool on) { per_thread_streams() = on; }

StreamScope::StreamScope(const Stream& stream)
    : device_(stream.device()), previous_(current_slot(device_)) {
  stream.use();
}

StreamScope::~StreamScope() { current_slot(device_) = std::move(previous_); }

void synchronize(Device device) {
  if (device.is_cpu()) return;
  device_state(device);
  count_sync("synchronize");
  timeline::Span span(timeline::Kind::wait, "synchronize", device);
  runtime::synchronize_device(device);
  throw_reported_error(device);
}

}  // namespace rensa::cuda

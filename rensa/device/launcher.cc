// Where every operation starts, and the accounts of waiting and of errors found on a device.
#include "rensa/device/launcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "rensa/core/error.h"
#include "rensa/core/host_memory.h"
#include "rensa/device/cuda_runtime.h"
#include "rensa/device/device_state.h"
#include "rensa/device/error_word.h"
#include "rensa/device/host_errors.h"
#include "rensa/device/stream.h"
#include "rensa/device/stream_capture.h"
#include "rensa/device/stream_state.h"
#include "rensa/device/timeline_span.h"
#include "rensa/device/tracer.h"

namespace rensa {

namespace {

/// Finds the device of an operation, notes on which stream its operands are used and counts the
/// writes to their storages.
class Placement final : public OperandVisitor {
 public:
  void read(Operand& operand) override { see(operand); }
  void write(Operand& operand) override {
    see(operand);
    operand.storage->count_write();
    if (operand.storage->is_read_only()) read_only = &operand;
  }
  void update(Operand& operand) override {
    see(operand);
    operand.storage->count_update();
    if (operand.storage->is_read_only()) read_only = &operand;
  }

  Device device;
  cuda::StreamState* stream = nullptr;  // null on the CPU
  const Operand* first = nullptr;
  const Operand* stranger = nullptr;   // the first operand on another device
  const Operand* read_only = nullptr;  // one that is to be written and may not be

 private:
  void see(const Operand& operand) {
    if (!first) {
      first = &operand;
      device = operand.view.device;
      if (device.is_cuda()) stream = cuda::current_stream_state(device);
    } else if (operand.view.device != device) {
      if (!stranger) stranger = &operand;
      return;
    }
    operand.storage->use_on(stream);
  }
};

/// What an operation between devices runs on, and the current streams of the other devices that its
/// operands lie on: it comes after what they have queued, and what they queue next comes after it.
class Crossing final : public OperandVisitor {
 public:
  void read(Operand& operand) override { see(operand); }
  void write(Operand& operand) override { see(operand); }

  cuda::StreamState* stream() const { return stream_; }
  void begin() {
    for (cuda::StreamState* other : all_) {
      if (other != stream_) stream_->wait_for(*other);
    }
  }
  void end() {
    for (cuda::StreamState* other : all_) {
      if (other != stream_) other->wait_for(*stream_);
    }
  }

 private:
  void see(const Operand& operand) {
    if (operand.view.device.is_cpu()) return;
    stream_ = cuda::current_stream_state(operand.view.device);
    operand.storage->use_on(stream_);
    if (std::ranges::find(all_, stream_) == all_.end()) all_.push_back(stream_);
  }
  cuda::StreamState* stream_ = nullptr;  // of the last GPU
  std::vector<cuda::StreamState*> all_;
};

/// A profiler's range around an operation.
class NamedRange {
 public:
  explicit NamedRange(const char* name) : on_(cuda::runtime::ranges_on()) {
    if (on_) cuda::runtime::push_range(name);
  }
  ~NamedRange() {
    if (on_) cuda::runtime::pop_range();
  }
  NamedRange(const NamedRange&) = delete;
  NamedRange& operator=(const NamedRange&) = delete;

 private:
  bool on_;
};

void run_on(cuda::StreamState* stream, Operation& operation) {
  NamedRange range(operation.name());
  timeline::Span span(timeline::Kind::operation, operation.name(), stream->device());
  std::size_t scratch = operation.workspace_bytes();
  // Threads may share a stream: the kernels of one operation must not find another's in between
  // that uses the same workspace.
  std::unique_lock<SpinLock> hold(stream->lock(), std::defer_lock);
  if (scratch > 0) hold.lock();
  if (cuda::Capture* capture = stream->capture()) capture->keep(operation);
  operation.run_cuda(cuda::make_context(stream, scratch));
}

void run_between_devices(Operation& operation) {
  Crossing crossing;
  operation.visit(crossing);
  crossing.begin();
  run_on(crossing.stream(), operation);
  crossing.end();
}

void check_placement(const Placement& placement, const Operation& operation) {
  if (placement.stranger && !operation.is_between_devices()) {
    throw DeviceError(fmt::format("{}: operands on {} and {}; move one with .to(...)",
                                  operation.name(), placement.first->view.describe(),
                                  placement.stranger->view.describe()));
  }
  if (placement.read_only) {
    throw ValueError(
        fmt::format("{}: cannot write into {}: its memory is read-only; copy() it first",
                    operation.name(), placement.read_only->view.describe()));
  }
}

}  // namespace

void launch(Operation& operation) {
  Placement placement;
  operation.visit(placement);
  if (!placement.first) return;  // nothing to work on
  check_placement(placement, operation);
  if (Recorder* recorder = ThreadState::current().recorder) {
    recorder->operation(operation);
    if (current_tracer) return;
  }
  with_host_memory(operation.name(), [&] {
    if (placement.stranger) return run_between_devices(operation);
    if (placement.stream) return run_on(placement.stream, operation);
    timeline::Span span(timeline::Kind::operation, operation.name(), cpu());
    operation.run_cpu();
  });
}

namespace cuda {

LaunchContext make_context(StreamState* stream, std::size_t workspace_bytes) {
  if (Capture* capture = stream->capture()) return capture->context(stream, workspace_bytes);
  Device device = stream->device();
  runtime::set_device(device);
  void* workspace = workspace_bytes > 0 ? stream->workspace(workspace_bytes) : nullptr;
  return {device,
          stream,
          stream->handle(),
          workspace,
          workspace_bytes,
          stream->semaphores(),
          device_state(device).error_word_on_device};
}

namespace {

std::atomic<std::int64_t> sync_counter{0};

constinit thread_local bool sync_forbidden = false;

}  // namespace

void throw_reported_error(Device device) {
  if (device.is_cpu()) return;
  throw_host_error(device);
  ErrorWord& word = *device_state(device).error_word;
  std::atomic_ref<unsigned int> state(word.state);
  unsigned int written = ErrorWord::written;
  if (state.load(std::memory_order_acquire) != written ||
      !state.compare_exchange_strong(written, ErrorWord::busy, std::memory_order_acquire)) {
    return;
  }
  ErrorReport report = word.report;
  state.store(ErrorWord::empty, std::memory_order_release);
  throw_reported(report, device);
}

ForbidSync::ForbidSync() : previous_(std::exchange(sync_forbidden, true)) {}
ForbidSync::~ForbidSync() { sync_forbidden = previous_; }
AllowSync::AllowSync() : previous_(std::exchange(sync_forbidden, false)) {}
AllowSync::~AllowSync() { sync_forbidden = previous_; }

void count_sync(const char* what) {
  if (sync_forbidden) {
    throw SyncError(
        fmt::format("{} waits for the device, which cuda::ForbidSync forbids here", what));
  }
  if (Capture::current()) {
    throw SyncError(
        fmt::format("{} waits for the device, but this thread is capturing a stream: what is "
                    "recorded runs only "
                    "when its graph is launched; do it before begin_capture or after end_capture",
                    what));
  }
  sync_counter.fetch_add(1, std::memory_order_relaxed);
  if (Recorder* recorder = ThreadState::current().recorder) recorder->cannot_record(what);
}

std::int64_t sync_count() { return sync_counter.load(std::memory_order_relaxed); }

}  // namespace cuda
}  // namespace rensa

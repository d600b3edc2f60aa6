// Where every operation starts, and the accounts of waiting and of errors found on a device.
#include "rensa/device/launcher.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <string_view>

#include "rensa/core/error.h"
#include "rensa/device/cuda_runtime.h"
#include "rensa/device/device_state.h"
#include "rensa/device/operations.h"
#include "rensa/device/stream.h"
#include "rensa/device/tracer.h"

namespace rensa {

namespace {

/// Finds the device of an operation and notes on which stream its operands are used.
class Placement final : public OperandVisitor {
 public:
  void read(Operand& operand) override { see(operand); }
  void write(Operand& operand) override { see(operand); }

  Device device;
  cuda::StreamState* stream = nullptr;  // null on the CPU
  const Operand* first = nullptr;
  const Operand* stranger = nullptr;  // the first operand on another device

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
    if (stream) operand.storage->use_on(stream);
  }
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
  std::size_t scratch = operation.workspace_bytes();
  // Threads may share a stream: the kernels of one operation must not find another's in between
  // that uses the same workspace.
  std::unique_lock<SpinLock> hold(stream->lock(), std::defer_lock);
  if (scratch > 0) hold.lock();
  operation.run_cuda(cuda::make_context(stream, scratch));
}

}  // namespace

void launch(Operation& operation) {
  Placement placement;
  operation.visit(placement);
  if (!placement.first) return;  // nothing to work on
  if (placement.stranger) {
    if (!dynamic_cast<Transfer*>(&operation)) {
      throw DeviceError(fmt::format("{}: operands on {} and {}; move one with .to(...)",
                                    operation.name(), placement.first->view.describe(),
                                    placement.stranger->view.describe()));
    }
    // A transfer runs on its destination's stream, or on its source's towards the host.
    Device destination = placement.stranger->view.device;
    if (destination.is_cuda()) placement.stream = cuda::current_stream_state(destination);
  }
  if (Recorder* recorder = ThreadState::current().recorder) {
    recorder->operation(operation);
    if (current_tracer) return;
  }
  if (placement.stream) {
    run_on(placement.stream, operation);
  } else {
    operation.run_cpu();
  }
}

namespace cuda {

LaunchContext make_context(StreamState* stream, std::size_t workspace_bytes) {
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

/// The operations that report errors from the device. Slot 0 stands for all that come too late.
struct ReportedOperations {
  SpinLock lock;
  std::array<const char*, 64> names{"an operation"};
  unsigned int count = 1;
};

ReportedOperations& reported_operations() {
  static ReportedOperations table;
  return table;
}

std::string report_text(const ErrorWord& word, Device device) {
  auto& table = reported_operations();
  const char* name;
  {
    std::lock_guard<SpinLock> hold(table.lock);
    name = table.names[word.operation < table.count ? word.operation : 0];
  }
  bool label = std::string_view(name).starts_with("softmax_cross_entropy");
  return fmt::format(
      "{}: {} (reported by {}; the work queued after it has run)", name,
      label ? fmt::format("label {} is out of bounds for {} classes", word.value, word.bound)
            : fmt::format("index {} is out of bounds for axis 0 with size {}", word.value,
                          word.bound),
      device.str());
}

}  // namespace

unsigned int error_operation(const char* name) {
  auto& table = reported_operations();
  std::lock_guard<SpinLock> hold(table.lock);
  for (unsigned int i = 1; i < table.count; ++i) {
    if (table.names[i] == name || std::strcmp(table.names[i], name) == 0) return i;
  }
  if (table.count == table.names.size()) return 0;
  table.names[table.count] = name;
  return table.count++;
}

void throw_reported_error(Device device) {
  if (device.is_cpu()) return;
  ErrorWord& word = *device_state(device).error_word;
  std::atomic_ref<unsigned int> set(word.set);
  if (set.load(std::memory_order_acquire) == 0) return;
  ErrorWord copy = word;
  set.store(0, std::memory_order_release);
  throw IndexError(report_text(copy, device));
}

void count_sync(const char* what) {
  sync_counter.fetch_add(1, std::memory_order_relaxed);
  if (Recorder* recorder = ThreadState::current().recorder) recorder->cannot_record(what);
}

std::int64_t sync_count() { return sync_counter.load(std::memory_order_relaxed); }

}  // namespace cuda
}  // namespace rensa

// Launcher: the only place where device work starts. It checks that the operands share a device,
// sets that device, takes its current stream, notes which streams use which storage, and runs the
// operation's backend; a recording in progress on the thread gets a copy.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rensa/core/thread_state.h"
#include "rensa/device/operation.h"

namespace rensa {

struct StateBody;  // autograd/state.h

/// Runs `operation` on the device of its operands; on a GPU it is queued. Only a Transfer from or
/// to pageable host memory waits (counted). Throws DeviceError, naming the operation and the
/// operands, when they are not on one device.
void launch(Operation& operation);

/// What listens to a thread's launches and host effects while a step is recorded (graph/capture).
class Recorder {
 public:
  virtual ~Recorder() = default;
  /// Called before the thread takes `bytes` of memory.
  virtual void memory_wanted(std::int64_t /*bytes*/) {}
  /// Called before the operation runs eagerly.
  virtual void operation(Operation& operation) = 0;
  /// What an effect is on, where that may go: afterwards there is nothing to repeat.
  using EffectTarget = std::optional<std::weak_ptr<const void>>;
  /// A host effect that each replay repeats, in order with the others. `number` is what it holds of
  /// the host's: runs of a step in which it differs are not the same.
  virtual void effect(std::function<void()> effect, double number, EffectTarget target) = 0;
  /// A number that each replay asks anew, in order with the effects; returns its slot.
  virtual int scalar(std::function<HostScalar()> source) = 0;
  /// An array that the step hands out while it runs (a report). `use` was called with it; each
  /// replay calls it again, after its work is queued, with fresh memory holding that replay's
  /// values.
  virtual void output(const ArrayView& view, Storage* storage,
                      std::function<void(StoragePtr, const ArrayView&)> use) = 0;
  /// The recording holds only while `current()` gives what it gives now: the storage of a parameter
  /// that a step found through a Variable and not through its arguments.
  virtual void binding(std::function<const Storage*()> current) = 0;
  /// The step works with numbers of the host that replays ask anew, or that others read: `numbers`
  /// describes them. A step that changes them itself stays eager, as its replays would not.
  virtual void watch(std::function<std::vector<std::string>()> numbers) = 0;
  /// The step reads (`reads`) or sets a State. What it reads before it has set it is an input of
  /// each replay, and what is there in the end is left behind by each replay.
  virtual void state(const std::shared_ptr<StateBody>& state, bool reads) = 0;
  /// Something that cannot be recorded was done (a wait for the device): the step stays eager.
  virtual void cannot_record(const char* reason) = 0;
};

/// Makes `recorder` the thread's for a scope; with null, what is done there is no part of a step
/// that is being recorded.
class [[nodiscard]] RecorderScope {
 public:
  [[nodiscard]] explicit RecorderScope(Recorder* recorder)
      : previous_(std::exchange(ThreadState::current().recorder, recorder)) {}
  ~RecorderScope() { ThreadState::current().recorder = previous_; }
  RecorderScope(const RecorderScope&) = delete;
  RecorderScope& operator=(const RecorderScope&) = delete;

 private:
  Recorder* previous_;
};

/// Runs `effect` now, and again in each replay when the step is being recorded. A number that it
/// holds, and that each run of the step computes, is `number`: where it changes from run to run,
/// the step stays eager.
template <class F> void host_effect(F&& effect, double number = 0) {
  if (Recorder* recorder = ThreadState::current().recorder) recorder->effect(effect, number, {});
  effect();
}

/// The same with effect(*target), while `target` is there: what it holds goes with the step's own
/// memory where the target does not outlive the step.
template <class T, class F>
void host_effect_on(const std::shared_ptr<T>& target, F&& effect, double number = 0) {
  if (Recorder* recorder = ThreadState::current().recorder) {
    auto repeated = [weak = std::weak_ptr(target), effect] {
      if (auto there = weak.lock()) effect(*there);
    };
    recorder->effect(std::move(repeated), number, std::weak_ptr<const void>(target));
  }
  effect(*target);
}

/// A HostScalar of `source()` (double or long long), asked anew in each replay.
template <class F> HostScalar host_scalar(F&& source) {
  auto make = [source]() -> HostScalar {
    HostScalar s;
    if constexpr (std::is_floating_point_v<decltype(source())>) s.real = source();
    else s.integer = source();
    return s;
  };
  HostScalar s = make();
  if (Recorder* recorder = ThreadState::current().recorder) s.slot = recorder->scalar(make);
  return s;
}

namespace cuda {

/// What an operation is run with on `stream`, whose device becomes the thread's current one. The
/// workspace is the stream's: hold stream->lock() while queuing work that uses it.
LaunchContext make_context(StreamState* stream, std::size_t workspace_bytes);

/// Throws what the host found (host_errors.h), or the error that a kernel on `device` reported, if
/// any, and clears it. Called by every wait.
void throw_reported_error(Device device);

/// Counts one wait for a device or one pageable copy, and tells a recording about it. Called before
/// the wait: throws SyncError, naming `what`, under ForbidSync and while the thread captures a
/// stream.
void count_sync(const char* what);

}  // namespace cuda
}  // namespace rensa

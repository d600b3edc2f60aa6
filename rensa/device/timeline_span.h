// What the library itself puts into a timeline: Span around a piece of the host's work, and the
// source of what GPUs do.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "rensa/device/timeline.h"

namespace rensa::timeline {

/// `asking`: nobody has looked at RENSA_TIMELINE yet.
enum class State { off, asking, on };
extern constinit std::atomic<State> state;

/// Looks at the environment if nobody has. Whether one is in progress.
bool look();
std::int64_t now_ns();
/// Tells the GPUs' source that what this thread queues from now on belongs to operation `id`.
std::uint64_t begin_operation(Device device);
void end_operation(std::uint64_t id, Kind kind, const char* name, Device device,
                   std::int64_t begin_ns);

/// In the timeline for its scope; one relaxed load where nothing is recorded.
class Span {
 public:
  // Where it is off, nothing else is read, nor written: this is on the way of every operation.
  // NOLINTBEGIN(clang-analyzer-optin.cplusplus.UninitializedObject)
  Span(Kind kind, const char* name, Device device)
      : on_(state.load(std::memory_order_relaxed) != State::off && look()) {
    if (!on_) return;
    kind_ = kind;
    name_ = name;
    device_ = device;
    id_ = begin_operation(device);
    begin_ns_ = now_ns();
  }
  // NOLINTEND(clang-analyzer-optin.cplusplus.UninitializedObject)
  ~Span() {
    if (on_) end_operation(id_, kind_, name_, device_, begin_ns_);
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  const bool on_;
  Kind kind_;
  const char* name_;
  Device device_;
  std::uint64_t id_;
  std::int64_t begin_ns_;
};

/// What GPUs do. Its times are now_ns()'s.
class ActivitySource {
 public:
  struct Activity {
    Record record;
    std::uint64_t operation_id;  // 0: not known
  };
  virtual ~ActivitySource() = default;
  virtual void push(std::uint64_t operation_id) noexcept = 0;
  virtual void pop() noexcept = 0;
  /// Ends it; all work that matters is done.
  virtual std::vector<Activity> finish() = 0;
};
/// Starts it. Null, with the reason in `note`, where there is no way to listen to GPUs. It lives
/// for ever: threads may be in the middle of a push. Defined in backend/cuda and backend/no_cuda.
ActivitySource* start_activity_source(std::string& note);

}  // namespace rensa::timeline

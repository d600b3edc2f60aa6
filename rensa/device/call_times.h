// CallTimes: how long named calls take, which may call one another; what the TimerHooks of
// functions and of links are made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rensa/core/device.h"
#include "rensa/device/stream.h"

namespace rensa {

/// One call, and how long it took.
struct TimedCall {
  std::string name;         // what was called
  double elapsed_time = 0;  // in seconds
};

/// All calls of one name.
struct CallSummary {
  double elapsed_time = 0;      // in seconds
  std::int64_t occurrence = 0;  // how many calls
};

/// Calls on the CPU are timed by the clock, those on a GPU by two events on its current stream: the
/// GPU's time from the work queued before the call to the end of what the call has queued. Noting
/// that does not wait; reading does, for what is not done yet. Not for several threads at once.
class CallTimes {
 public:
  /// A call begins. Throws ValueError, naming `who`, while the current stream of `device` is being
  /// captured: the work does not run.
  void begin(const char* who, Device device);
  /// The call that has begun last ends.
  void end(std::string name);
  /// It ends, and is not counted.
  void forget();

  /// In the order in which they ended.
  const std::vector<TimedCall>& history();
  /// Seconds of the calls that were made by no other one.
  double total();
  std::map<std::string, CallSummary> summary();  // by name. Waits for what is not done.
  /// The summary as a table, headed by `title`. `unit` is "sec", "ms", "us", "ns", "auto": one that
  /// fits the longest time, or "auto_foreach": one that fits each. Throws ValueError for another.
  std::string str(std::string_view title, std::string_view unit);

 private:
  enum class Wait { no, yes };
  struct Running {
    Device device;
    double start;  // in seconds
  };
  struct Pending {
    std::size_t call;
    bool outermost;
    Device device;
    cuda::Event start, stop;
  };
  cuda::Event take_event(Device device);
  void add(std::size_t call, bool outermost, double seconds);
  /// Takes the times of the calls that are done; of all, where it waits.
  void settle(Wait wait);

  std::vector<Running> running_;
  std::vector<cuda::Event> started_;  // of those of GPUs
  std::vector<TimedCall> calls_;
  std::vector<Pending> pending_;  // calls whose times are not known yet, the first of them first
  std::map<Device, std::vector<cuda::Event>> spare_;
  double total_ = 0;
};

}  // namespace rensa

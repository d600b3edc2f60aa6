// CallTimes.
#include "rensa/device/call_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "rensa/core/error.h"
#include "rensa/core/report_unit.h"
#include "rensa/core/text_table.h"

namespace rensa {

namespace {

/// Calls that may wait for being read, before it is looked which of them are done.
constexpr std::size_t kMostPending = 256;

constexpr std::array kUnits = {Unit{"sec", 1, 2}, Unit{"ms", 1e-3, 2}, Unit{"us", 1e-6, 2},
                               Unit{"ns", 1e-9, 2}};

/// Of a clock that never goes back.
double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

cuda::Event CallTimes::take_event(Device device) {
  std::vector<cuda::Event>& spare = spare_[device];
  if (spare.empty()) return cuda::Event();
  cuda::Event event = std::move(spare.back());
  spare.pop_back();
  return event;
}

void CallTimes::begin(const char* who, Device device) {
  Running call{device, seconds_now()};
  if (device.is_cuda()) {
    if (cuda::current_stream(device).is_capturing()) {
      throw ValueError(fmt::format(
          "{}: the current stream of {} is being captured, so that nothing runs whose time could "
          "be taken; time the launches of the graph by events",
          who, device.str()));
    }
    cuda::Event start = take_event(device);
    start.record(device);
    started_.push_back(std::move(start));
  }
  running_.push_back(call);
}

void CallTimes::end(std::string name) {
  Running call = running_.back();
  running_.pop_back();
  bool outermost = running_.empty();
  calls_.push_back({std::move(name), 0});
  if (call.device.is_cpu()) {
    add(calls_.size() - 1, outermost, seconds_now() - call.start);
    return;
  }
  cuda::Event start = std::move(started_.back()), stop = take_event(call.device);
  started_.pop_back();
  stop.record(call.device);
  pending_.push_back(
      {calls_.size() - 1, outermost, call.device, std::move(start), std::move(stop)});
  if (pending_.size() > kMostPending) settle(Wait::no);
}

void CallTimes::forget() {
  Device device = running_.back().device;
  running_.pop_back();
  if (device.is_cpu()) return;
  spare_[device].push_back(std::move(started_.back()));
  started_.pop_back();
}

void CallTimes::add(std::size_t call, bool outermost, double seconds) {
  calls_[call].elapsed_time = seconds;
  if (outermost) total_ += seconds;
}

void CallTimes::settle(Wait wait) {
  auto first = pending_.begin();
  for (; first != pending_.end(); ++first) {
    if (!first->stop.done()) {
      if (wait == Wait::no) break;
      first->stop.synchronize();
    }
    add(first->call, first->outermost, cuda::elapsed_time(first->start, first->stop) * 1e-3);
    std::vector<cuda::Event>& spare = spare_[first->device];
    spare.push_back(std::move(first->start));
    spare.push_back(std::move(first->stop));
  }
  pending_.erase(pending_.begin(), first);
}

const std::vector<TimedCall>& CallTimes::history() {
  settle(Wait::yes);
  return calls_;
}

double CallTimes::total() {
  settle(Wait::yes);
  return total_;
}

std::map<std::string, CallSummary> CallTimes::summary() {
  std::map<std::string, CallSummary> all;
  for (const TimedCall& call : history()) {
    CallSummary& of_name = all[call.name];
    of_name.elapsed_time += call.elapsed_time;
    ++of_name.occurrence;
  }
  return all;
}

std::string CallTimes::str(std::string_view title, std::string_view unit) {
  std::map<std::string, CallSummary> all = summary();
  std::vector<std::pair<std::string, CallSummary>> longest_first(all.begin(), all.end());
  std::ranges::stable_sort(longest_first, [](const auto& a, const auto& b) {
    return a.second.elapsed_time > b.second.elapsed_time;
  });
  ReportUnit in(kUnits, unit, longest_first.empty() ? 0 : longest_first[0].second.elapsed_time);
  std::vector<std::vector<std::string>> rows{{std::string(title), "ElapsedTime", "Occurrence"}};
  for (const auto& [name, of_name] : longest_first) {
    rows.push_back({name, in(of_name.elapsed_time), std::to_string(of_name.occurrence)});
  }
  return text_table(rows, "<>>") + "\n";
}

}  // namespace rensa

// Timelines in Chrome's trace format: JSON, times in microseconds, a process for the host and for
// each GPU, a thread for each row.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "rensa/core/error.h"
#include "rensa/core/files.h"
#include "rensa/device/timeline.h"
#include "rensa/device/timeline_ranks.h"
#include "rensa/device/timeline_rows.h"

namespace rensa::timeline {

namespace {

constexpr std::array<std::pair<Kind, const char*>, 8> kCategories{{
    {Kind::operation, "operation"},
    {Kind::kernel, "kernel"},
    {Kind::copy_to_device, "copy to device"},
    {Kind::copy_to_host, "copy to host"},
    {Kind::copy_on_device, "copy on device"},
    {Kind::memset, "memset"},
    {Kind::wait, "wait"},
    {Kind::range, "range"},
}};

constexpr double kMostTime = 1e15;  // microseconds that a trace may tell of: thirty years

const char* category(Kind kind) {
  for (auto [known, name] : kCategories) {
    if (known == kind) return name;
  }
  return "operation";
}

Kind kind_of(std::string_view category) {
  for (auto [kind, name] : kCategories) {
    if (name == category) return kind;
  }
  return category == "gpu_memset" ? Kind::memset : Kind::operation;
}

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

int process_of(Device device) { return device.is_cuda() ? device.index + 1 : 0; }

/// Events of one tid must not overlap, or viewers drop some: a kernel that is brought to the
/// processors while the one before it ends, and branches of a graph, stand on rows beside their
/// stream's.
constexpr std::int64_t kBeside = 1'000'000;  // streams have smaller numbers

std::vector<std::int64_t> tids_of(const std::vector<Record>& records) {
  std::vector<std::int64_t> tids;
  std::map<std::pair<int, std::int64_t>, std::vector<const Record*>> rows;
  for (const Record& record : records) {
    tids.push_back(record.row);
    if (record.device.is_cuda()) rows[{record.device.index, record.row}].push_back(&record);
  }
  for (auto& [place, row] : rows) {
    std::vector<std::size_t> lanes = arrange_lanes(row);
    for (std::size_t i = 0; i < row.size(); ++i) {
      tids[static_cast<std::size_t>(row[i] - records.data())] +=
          static_cast<std::int64_t>(lanes[i]) * kBeside;
    }
  }
  return tids;
}

std::string row_name(const Record& record, std::int64_t tid) {
  if (record.device.is_cuda()) {
    return fmt::format("stream {}{}", record.row, tid == record.row ? "" : ", beside");
  }
  return record.row == 0 ? "waits" : fmt::format("thread {}", record.row);
}

std::string event_text(const Record& r, std::int64_t tid) {
  std::string more;
  auto add = [&](const char* name, const std::string& value) {
    more += fmt::format("{}\"{}\": {}", more.empty() ? "" : ", ", name, value);
  };
  if (!r.operation.empty()) add("operation", quoted(r.operation));
  if (!r.detail.empty()) add("kernel", quoted(r.detail));
  if (r.bytes > 0) add("bytes", std::to_string(r.bytes));
  if (tid != r.row) add("stream", std::to_string(r.row));
  return fmt::format(
      "{{\"ph\": \"X\", \"name\": {}, \"cat\": \"{}\", \"pid\": {}, \"tid\": {}, \"ts\": {:.3f}, "
      "\"dur\": {:.3f}, \"args\": {{{}}}}}",
      quoted(r.name), category(r.kind), process_of(r.device), tid,
      static_cast<double>(r.begin_ns) / 1e3, static_cast<double>(r.end_ns - r.begin_ns) / 1e3,
      more);
}

/// "cuda:1", and "rank 2: cuda:1", is gpu(1); all else is the host.
Device device_of(std::string_view process) {
  constexpr std::string_view kGpu = "cuda:";
  if (std::size_t rank = process.find(": "); rank != process.npos) process.remove_prefix(rank + 2);
  if (process.substr(0, kGpu.size()) != kGpu) return cpu();
  int index = 0;  // too many digits leave it so
  std::from_chars(process.data() + kGpu.size(), process.data() + process.size(), index);
  return gpu(std::clamp(index, 0, kMaxGpus - 1));
}

std::int64_t integer(const nlohmann::json& event, const char* name) {
  auto found = event.find(name);
  if (found == event.end() || !found->is_number()) return 0;
  if (!found->is_number_float()) return found->get<std::int64_t>();
  auto value = found->get<double>();
  return std::abs(value) < 0x1p63 ? static_cast<std::int64_t>(value) : 0;
}

std::string text(const nlohmann::json& event, const char* name) {
  auto found = event.find(name);
  return found != event.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// Microseconds as nanoseconds.
std::int64_t nanoseconds(const nlohmann::json& event, const char* name, const std::string& path) {
  auto found = event.find(name);
  double us = found != event.end() && found->is_number() ? found->get<double>() : 0;
  if (std::abs(us) <= kMostTime) return std::llround(us * 1e3);
  throw SerializationError(
      fmt::format("timeline: {}: the \"{}\" of an event is {} microseconds", path, name, us));
}

}  // namespace

void write(const std::vector<Record>& records, const std::string& path) { write(records, path, 0); }

void write(const std::vector<Record>& records, const std::string& path, std::int64_t began_ns) {
  FileWriter out(path);
  out.write("{\"displayTimeUnit\": \"ms\", ");
  if (began_ns != 0) out.write(fmt::format("\"began_ns\": {}, ", began_ns));
  out.write("\"traceEvents\": [");
  const char* separator = "\n";
  auto line = [&](const std::string& text) {
    out.write(separator);
    out.write(text);
    separator = ",\n";
  };
  std::set<int> processes;
  std::set<std::pair<int, std::int64_t>> rows;
  std::vector<std::int64_t> tids = tids_of(records);
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Record& record = records[i];
    std::int64_t tid = tids[i];
    int process = process_of(record.device);
    if (processes.insert(process).second) {
      std::string name = record.device.is_cuda() ? record.device.str() : "host";
      line(
          fmt::format("{{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": {}, \"args\": "
                      "{{\"name\": \"{}\"}}}}",
                      process, name));
    }
    if (rows.insert({process, tid}).second) {
      line(
          fmt::format("{{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": {}, \"tid\": {}, "
                      "\"args\": {{\"name\": \"{}\"}}}}",
                      process, tid, row_name(record, tid)));
    }
    line(event_text(record, tid));
  }
  out.write("\n]}\n");
  out.finish();
}

std::vector<Record> read(const std::string& path) {
  nlohmann::json trace = nlohmann::json::parse(detail::read_whole_file(path), nullptr, false);
  const nlohmann::json* events = &trace;
  if (trace.is_object()) {
    auto found = trace.find("traceEvents");
    events = found == trace.end() ? nullptr : &*found;
  }
  if (!events || !events->is_array()) {
    throw SerializationError(fmt::format(
        "timeline: {} is no trace: a JSON object with \"traceEvents\" is wanted", path));
  }
  std::map<std::int64_t, Device> devices;
  for (const auto& event : *events) {
    if (!event.is_object() || text(event, "name") != "process_name") continue;
    if (auto args = event.find("args"); args != event.end() && args->is_object()) {
      devices[integer(event, "pid")] = device_of(text(*args, "name"));
    }
  }
  std::vector<Record> records;
  for (const auto& event : *events) {
    if (!event.is_object() || text(event, "ph") != "X") continue;
    Record record;
    record.kind = kind_of(text(event, "cat"));
    record.name = text(event, "name");
    record.begin_ns = nanoseconds(event, "ts", path);
    record.end_ns = record.begin_ns + nanoseconds(event, "dur", path);
    record.row = integer(event, "tid");
    if (auto known = devices.find(integer(event, "pid")); known != devices.end()) {
      record.device = known->second;
    }
    if (auto args = event.find("args"); args != event.end() && args->is_object()) {
      record.operation = text(*args, "operation");
      record.detail = text(*args, "kernel");
      record.bytes = integer(*args, "bytes");
      if (args->contains("stream")) record.row = integer(*args, "stream");
    }
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace rensa::timeline
